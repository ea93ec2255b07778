/** How replies and errors leave the server: the glue between what handlers answer and what is sent. */
import type { ServerResponse } from 'node:http'
import type { Log } from '../../runtime/log/log.ts'
import type { Reply } from '../commands/call.ts'
import type { Exchange } from './exchange.ts'
import { problemFrom } from './problem-from.ts'
import { sendProblem, sendReply } from './send.ts'

export interface AnsweringOptions {
  readonly log: Log
  /** Stands before the pages of problem types; may be empty. */
  readonly publicUrl: string
  /** Whether connections are to be closed after their answer. */
  readonly closing: () => boolean
}

export interface Answering {
  readonly reply: (exchange: Exchange, response: ServerResponse, reply: Reply) => void
  readonly fail: (exchange: Exchange, response: ServerResponse, error: unknown) => void
}

const OPERATION = /^\/v1\/operations\/(op_[0-9a-z]+)$/

export const answering = ({ log, publicUrl, closing }: AnsweringOptions): Answering => ({
  reply: (exchange, response, reply) => {
    const location = reply.headers?.['Location']
    if (location !== undefined) exchange.operationId = OPERATION.exec(location)?.[1]
    if (response.headersSent || response.destroyed) return
    sendReply(response, exchange, reply, closing())
  },
  fail: (exchange, response, thrown) => {
    const { error, foreseen } = problemFrom(thrown)
    if (!foreseen) log.error({ request_id: exchange.requestId, route: exchange.route, err: thrown }, 'Unforeseen error')
    else if (error.cause !== undefined)
      log.warn({ request_id: exchange.requestId, route: exchange.route, code: error.code, err: error.cause }, 'Refused')
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    sendProblem(response, exchange, error, { base: publicUrl, closing: closing() })
  },
})
