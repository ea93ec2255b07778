import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import type { MailConfig } from '../config/mail.ts'
import type { MailTransport } from './mail-transport.ts'
import { webhookTransport } from './webhook-transport.ts'

/** Whom to believe: those that Node does (NODE_EXTRA_CA_CERTS among them), and those of the file. */
const authorities = (file: string | undefined): readonly string[] => {
  const usual = getCACertificates('default')
  if (file === undefined) return usual
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError(`Cannot use SERVICE_MAIL_CA_FILE: ${why}`, { cause })
  }
  try {
    const pem = readFileSync(file, 'utf8')
    return pem.includes('-----BEGIN CERTIFICATE-----') ? [...usual, pem] : refuse('there is no PEM certificate in it')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return refuse('it cannot be read', error)
  }
}

/** Opens the way that is configured. @throws ConfigError when the authorities cannot be read */
export const openMailTransport = async (config: MailConfig): Promise<MailTransport> => {
  const trusted = authorities(config.caFile)
  if (config.by === 'webhook') return webhookTransport(config, trusted)
  // Loaded where it is used: most of it is for other ways of sending.
  const { smtpTransport } = await import('./smtp-transport.ts')
  return smtpTransport(config, trusted)
}
