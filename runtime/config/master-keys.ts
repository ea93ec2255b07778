import { ConfigError } from './parse-env.ts'

const KEY_BYTES = 32

/**
 * A master key from 32 bytes in base64; `where` it was found goes into the error, the key never does.
 * @throws ConfigError
 */
export const parseMasterKey = (where: string, text: string): Buffer => {
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== KEY_BYTES || key.toString('base64') !== text.trim())
    throw new ConfigError(
      `Cannot use ${where}: expected ${KEY_BYTES} bytes in base64, e.g. of "openssl rand -base64 32"`,
    )
  return key
}

/** The master keys of a comma-separated list. @throws ConfigError */
export const parseMasterKeys = (where: string, list: string): Buffer[] =>
  list
    .split(',')
    .filter(part => part.trim() !== '')
    .map(part => parseMasterKey(where, part))
