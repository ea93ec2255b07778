/** One request while it is under way: what its log line, its metrics and its errors need to know. */
import type { IncomingMessage } from 'node:http'

export interface Exchange {
  readonly requestId: string
  /** performance.now() at its first byte of work. */
  readonly startedAt: number
  readonly clientIp: string
  /** What the client calls itself, cut to what can be kept. */
  readonly userAgent: string | undefined
  /** The template of the matched route. */
  route: string
  /** The credential's id, once it is known. */
  credentialId: string | undefined
  /** The agent's token that called, once it is known: its requests are kept for whoever made it. */
  agentTokenId: string | undefined
  /** What the answer, whatever it is, tells the caller about their credential. */
  credentialHeaders: Readonly<Record<string, string>> | undefined
  /** The operation that the call started. */
  operationId: string | undefined
  /** Its errors are told in OAuth's words too. */
  speaksOAuth?: true
  /** RateLimit-Policy and RateLimit, once a limit was counted. */
  rateLimitPolicy: string | undefined
  rateLimit: string | undefined
}

const exchanges = new WeakMap<IncomingMessage, Exchange>()

export const rememberExchange = (request: IncomingMessage, exchange: Exchange): void => {
  exchanges.set(request, exchange)
}

/** The exchange of a request. @throws Error when none was begun: a mistake in the composition */
export const exchangeOf = (request: IncomingMessage): Exchange => {
  const exchange = exchanges.get(request)
  if (exchange === undefined) throw new Error('Cannot serve a request that was not begun')
  return exchange
}
