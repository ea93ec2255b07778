import { authorities } from '../../runtime/config/authorities.ts'
import type { MailConfig } from '../config/mail.ts'
import type { MailTransport } from './mail-transport.ts'
import { webhookTransport } from './webhook-transport.ts'

/** Opens the way that is configured. @throws ConfigError when the authorities cannot be read */
export const openMailTransport = async (config: MailConfig): Promise<MailTransport> => {
  const trusted = authorities('SERVICE_MAIL_CA_FILE', config.caFile)
  if (config.by === 'webhook') return webhookTransport(config, trusted)
  // Loaded where it is used: most of it is for other ways of sending.
  const { smtpTransport } = await import('./smtp-transport.ts')
  return smtpTransport(config, trusted)
}
