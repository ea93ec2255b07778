/** Letters to a relay: one POST each, over https, to that address and no other. */
import { request } from 'node:https'
import { outgoingAgent } from '../../runtime/config/authorities.ts'
import type { WebhookConfig } from '../config/mail.ts'
import { type Mail, MailError, type MailTransport } from './mail-transport.ts'

/** Answers say nothing that we need: they are read only so far. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Our words for what went wrong: the error itself could name the address with a secret in it. */
const failure = (error: unknown, aborted: boolean): MailError => {
  if (error instanceof MailError) return error
  if (aborted) return new MailError('The mail relay took too long')
  const code = (error as { readonly code?: unknown } | undefined)?.code
  const known = typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'ERROR'
  return new MailError(`The mail relay cannot be reached: ${known}`)
}

/** @param authorities PEMs to trust */
export const webhookTransport = ({ url, token }: WebhookConfig, authorities: readonly string[]): MailTransport => {
  const agent = outgoingAgent(authorities, { keepAlive: false })
  const post = (mail: Mail, signal: AbortSignal): Promise<void> => {
    const { id, to, subject, text, html } = mail
    const body = Buffer.from(JSON.stringify({ to, subject, text, html }))
    return new Promise((resolve, reject) => {
      const sent = request(url, {
        method: 'POST',
        agent: agent(),
        signal,
        headers: {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          'Idempotency-Key': id,
        },
      })
      sent.on('error', reject)
      sent.on('response', response => {
        const status = response.statusCode ?? 0
        let read = 0
        response.on('error', reject)
        response.on('data', (chunk: Buffer) => {
          read += chunk.length
          if (read > MAX_ANSWER_BYTES) response.destroy(new MailError('The mail relay answers without an end'))
        })
        response.on('end', () => {
          // A redirect is an answer like any other that is no success: the letter goes nowhere else.
          if (status >= 200 && status < 300) resolve()
          else reject(new MailError(`The mail relay answered ${status}`))
        })
      })
      sent.end(body)
    })
  }
  return {
    send: async (mail, signal) => {
      try {
        await post(mail, signal)
      } catch (error) {
        throw failure(error, signal.aborted)
      }
    },
  }
}
