/** Writes answers: JSON, or a problem document. The headers that every answer has are here and nowhere else. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { ERROR_CODES } from '../../lib/errors/codes.ts'
import type { DomainError } from '../../lib/errors/domain-error.ts'
import type { Reply } from '../commands/call.ts'
import { errorMediaTypeOf, oauthProblemOf, PROBLEM_MEDIA_TYPE, problemOf } from '../contract/problem.ts'
import type { Exchange } from './exchange.ts'

export type Headers = Record<string, string | number>

/** Nothing of ours is to be cached, sniffed, framed or referred to. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
}

const headersOf = (exchange: Exchange): Headers => {
  const headers: Headers = { 'X-Request-Id': exchange.requestId, ...SECURITY_HEADERS, ...exchange.credentialHeaders }
  if (exchange.rateLimitPolicy !== undefined && exchange.rateLimit !== undefined) {
    headers['RateLimit-Policy'] = exchange.rateLimitPolicy
    headers['RateLimit'] = exchange.rateLimit
  }
  return headers
}

/** Sends a reply; `closing` tells the client to open a new connection next time. */
export const sendReply = (response: ServerResponse, exchange: Exchange, reply: Reply, closing: boolean): void => {
  const headers = headersOf(exchange)
  if (closing) headers['Connection'] = 'close'
  if (reply.headers !== undefined) Object.assign(headers, reply.headers)
  if (reply.body === undefined) {
    response.writeHead(reply.status, headers)
    response.end()
    return
  }
  // A text leaves in one write with the head, bytes would take two.
  const content = Buffer.isBuffer(reply.body) ? reply.body : JSON.stringify(reply.body)
  headers['Content-Type'] ??= 'application/json; charset=utf-8'
  headers['Content-Length'] = Buffer.byteLength(content)
  response.writeHead(reply.status, headers)
  response.end(content)
}

const challenge = (code: string): string =>
  code === 'unauthenticated' ? 'Bearer realm="svc"' : `Bearer realm="svc", error="${code}"`

/** RFC 6750, section 3.1. */
const scopeChallenge = ({ details }: DomainError): string => {
  const missing: unknown = details['missing_permissions']
  const scope = Array.isArray(missing) && missing.length > 0 ? `, scope="${missing.join(' ')}"` : ''
  return `${challenge('insufficient_scope')}${scope}`
}

/** Sends an error as a problem document; `base` stands before the page of its type. */
export const sendProblem = (
  response: ServerResponse,
  exchange: Exchange,
  error: DomainError,
  options: { readonly base: string; readonly closing: boolean; readonly headers?: Headers },
): void => {
  const { status } = ERROR_CODES[error.code]
  const documentOf = exchange.speaksOAuth === true ? oauthProblemOf : problemOf
  const bytes = Buffer.from(JSON.stringify(documentOf(error, error.replayOf ?? exchange.requestId, options.base)))
  const headers: Headers = {
    ...headersOf(exchange),
    ...options.headers,
    'Content-Type': errorMediaTypeOf(exchange),
    'Content-Length': bytes.length,
  }
  if (status === 401) headers['WWW-Authenticate'] = challenge(error.code)
  if (error.code === 'insufficient_scope') headers['WWW-Authenticate'] = scopeChallenge(error)
  if (error.replayOf !== undefined) headers['Idempotency-Replayed'] = 'true'
  if (error.retryAfterSeconds !== undefined) headers['Retry-After'] = error.retryAfterSeconds
  else if (status === 503) headers['Retry-After'] = 1
  if (options.closing) headers['Connection'] = 'close'
  response.writeHead(status, headers)
  response.end(bytes)
}

/** A whole HTTP answer as text, for sockets whose request could not even be parsed. */
export const rawProblem = (error: DomainError, requestId: string, base: string): string => {
  const { status } = ERROR_CODES[error.code]
  const body = JSON.stringify(problemOf(error, requestId, base))
  const headers = {
    'X-Request-Id': requestId,
    ...SECURITY_HEADERS,
    'Content-Type': PROBLEM_MEDIA_TYPE,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`
}
