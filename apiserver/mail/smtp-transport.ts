/** Letters by SMTP, over TLS with a certificate that proves the server, and never without. */
import { createTransport } from 'nodemailer'
import { outgoingContext } from '../../runtime/config/authorities.ts'
import type { SmtpConfig } from '../config/mail.ts'
import { type Mail, MailError, type MailTransport } from './mail-transport.ts'

const TIMEOUT_MS = 10_000
const SENDER_NAME = 'Managed Postgres'

interface SmtpFailure {
  readonly code?: unknown
  readonly command?: unknown
  readonly responseCode?: unknown
}

/** Commands whose refusal is about the letter; a refused sign-in, say, is about our settings, which somebody can mend. */
const ABOUT_THE_LETTER = ['RCPT TO', 'DATA']

const word = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && /^[A-Z][A-Z0-9 _]{0,31}$/.test(value) ? value : otherwise

/** Its words are ours: an answer of the server could quote the letter. */
const mailError = (error: unknown, aborted: boolean): MailError => {
  const { code, command, responseCode } = (error ?? {}) as SmtpFailure
  if (aborted) return new MailError('The mail server took too long')
  const at = word(command, 'CONN')
  if (typeof responseCode !== 'number') return new MailError(`The mail server failed at ${at}: ${word(code, 'ERROR')}`)
  return new MailError(`The mail server answered ${responseCode} at ${at}`, {
    permanent: responseCode >= 500 && responseCode < 600 && ABOUT_THE_LETTER.some(about => at.startsWith(about)),
  })
}

/** @param authorities PEMs to trust */
export const smtpTransport = (config: SmtpConfig, authorities: readonly string[]): MailTransport => {
  const { host, port, implicitTls, sender, user, password } = config
  const transporter = createTransport({
    host,
    port,
    secure: implicitTls,
    requireTLS: !implicitTls,
    // An account that is configured is used, also with a server that does not say that it asks for one.
    ...(user === undefined ? {} : { auth: { user, pass: password }, forceAuth: true }),
    tls: { secureContext: outgoingContext(authorities)(), rejectUnauthorized: true },
    dnsTimeout: TIMEOUT_MS,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // A letter's content is text of ours: no path and no address in it is ever read.
    disableFileAccess: true,
    disableUrlAccess: true,
    logger: false,
  })
  const domain = sender.slice(sender.lastIndexOf('@') + 1)
  return {
    send: async ({ id, to, subject, text, html }: Mail, signal) => {
      try {
        await transporter.sendMail({
          from: { name: SENDER_NAME, address: sender },
          to: { name: '', address: to },
          subject,
          text,
          html,
          messageId: `<${id}@${domain}>`,
          // Written by a program: nobody's absence is answered to it.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal,
        })
      } catch (error) {
        throw mailError(error, signal.aborted)
      }
    },
  }
}
