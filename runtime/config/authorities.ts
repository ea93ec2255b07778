import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { ConfigError } from './parse-env.ts'

/**
 * Whose certificates to believe: those that Node does (NODE_EXTRA_CA_CERTS among them), and those of a file that a variable names.
 * @throws ConfigError when the file cannot be read, or holds none
 */
export const authorities = (variable: string, file: string | undefined): readonly string[] => {
  const usual = getCACertificates('default')
  if (file === undefined) return usual
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError(`Cannot use ${variable}: ${why}`, { cause })
  }
  try {
    const pem = readFileSync(file, 'utf8')
    return pem.includes('-----BEGIN CERTIFICATE-----') ? [...usual, pem] : refuse('there is no PEM certificate in it')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return refuse('it cannot be read', error)
  }
}
