/** Secrets of the API server: apart from the configuration, never logged. */
import { hkdfSync } from 'node:crypto'
import { ConfigError } from './config.ts'

const KEY_BYTES = 32

/** A master key from 32 bytes in base64. @throws ConfigError */
export const parseMasterKey = (name: string, text: string): Buffer => {
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== KEY_BYTES || key.toString('base64') !== text.trim())
    throw new ConfigError(
      `Cannot use ${name}: expected ${KEY_BYTES} bytes in base64, e.g. of "openssl rand -base64 32"`,
    )
  return key
}

/** The master keys of a comma-separated list. @throws ConfigError */
export const parseMasterKeys = (name: string, list: string): Buffer[] =>
  list
    .split(',')
    .filter(part => part.trim() !== '')
    .map(part => parseMasterKey(name, part))

/** Half of what seals replies that hold a secret; the other half is the client's Idempotency-Key. */
export const sealingKeyOf = (masterKey: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', masterKey, '', 'svc idempotent replies', KEY_BYTES))
