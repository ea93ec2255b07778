/** How letters leave: an https relay, else a mail server, else not at all. */
import { isEmailAddress } from '../../lib/model/email-address.ts'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import type { ApiServerEnv } from './env.ts'

/** A relay that takes letters as JSON. */
export interface WebhookConfig {
  readonly by: 'webhook'
  readonly url: string
  /** A secret. */
  readonly token: string
  readonly caFile: string | undefined
}

/** A server that takes letters by SMTP, over TLS and nothing else. */
export interface SmtpConfig {
  readonly by: 'smtp'
  readonly host: string
  readonly port: number
  /** TLS from the first byte; otherwise STARTTLS, or nothing is sent. */
  readonly implicitTls: boolean
  readonly user: string | undefined
  /** A secret. */
  readonly password: string | undefined
  /** Whom letters are from. */
  readonly sender: string
  readonly caFile: string | undefined
}

export type MailConfig = WebhookConfig | SmtpConfig

const refuse = (variable: string, why: string): ConfigError => new ConfigError(`Cannot use ${variable}: ${why}`)

const IMPLICIT_TLS_PORT = 465

const webhook = (env: ApiServerEnv, url: string): WebhookConfig => {
  const token = env.SERVICE_MAIL_WEBHOOK_TOKEN
  if (token === undefined) throw refuse('SERVICE_MAIL_WEBHOOK_URL', 'SERVICE_MAIL_WEBHOOK_TOKEN must be set too')
  return { by: 'webhook', url, token, caFile: env.SERVICE_MAIL_CA_FILE }
}

const smtp = (env: ApiServerEnv, host: string, sender: string): SmtpConfig => {
  const { SERVICE_DEFAULT_SMTP_USER: user, SERVICE_DEFAULT_SMTP_PASSWORD: password } = env
  if (!isEmailAddress(sender)) throw refuse('SERVICE_DEFAULT_SMTP_ADMIN_EMAIL', 'must be an ASCII mail address')
  if ((user === undefined) !== (password === undefined))
    throw refuse('SERVICE_DEFAULT_SMTP_USER', 'it and SERVICE_DEFAULT_SMTP_PASSWORD need each other')
  return {
    by: 'smtp',
    host,
    port: env.SERVICE_DEFAULT_SMTP_PORT,
    implicitTls: env.SERVICE_DEFAULT_SMTP_PORT === IMPLICIT_TLS_PORT,
    user,
    password,
    sender,
    caFile: env.SERVICE_MAIL_CA_FILE,
  }
}

/** Undefined: mail is not configured. @throws ConfigError */
export const mailConfig = (env: ApiServerEnv): MailConfig | undefined => {
  const { SERVICE_MAIL_WEBHOOK_URL: url, SERVICE_DEFAULT_SMTP_HOST: host } = env
  const sender = env.SERVICE_DEFAULT_SMTP_ADMIN_EMAIL
  const chosen =
    url !== undefined
      ? webhook(env, url)
      : host !== undefined && sender !== undefined
        ? smtp(env, host, sender)
        : undefined
  if (chosen !== undefined && env.SERVICE_CONSOLE_URL === undefined)
    throw refuse('SERVICE_CONSOLE_URL', 'it must be set where mail is configured, since letters link there')
  return chosen
}
