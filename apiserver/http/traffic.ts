/** Begins and ends requests: ids, addresses, caps of the request line and headers, the log line, metrics, what is in flight. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { AgentRequests } from '../auth/agent-requests.ts'
import type { TrustedNetworks } from '../config/trusted-networks.ts'
import { clientAddress } from './client-address.ts'
import { type Exchange, rememberExchange } from './exchange.ts'
import type { HttpMetrics } from './http-metrics.ts'
import { checkPathEncoding, pathOf } from './query.ts'
import { requestIdOf } from './request-id.ts'

export const MAX_URL_LENGTH = 8 * 1024
const MAX_HEADER_LINES = 64
const MAX_USER_AGENT = 256
const UNMATCHED = 'unmatched'
/** Of the parameters in paths the ones that prove something: such a path is kept as its template. */
const SECRET_PARAMETER = /\{user_code\}/
/** Headers that mean one thing: Node keeps the first of two and says nothing, so a repeated one is refused. */
const SINGLE = new Set(['authorization', 'content-type', 'x-service-organization-id', 'x-request-id', 'host'])
const SINGLE_LENGTHS = new Set([...SINGLE].map(name => name.length))

const repeatedHeader = (rawHeaders: readonly string[]): string | undefined => {
  let seen: string[] | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at]
    if (raw === undefined || !SINGLE_LENGTHS.has(raw.length)) continue
    const name = raw.toLowerCase()
    if (!SINGLE.has(name)) continue
    if (seen?.includes(name) === true) return name
    seen ??= []
    seen.push(name)
  }
  return undefined
}

const checkHead = (request: IncomingMessage, target: string): void => {
  if (target.length > MAX_URL_LENGTH)
    throw new DomainError('uri_too_long', `The URL is too long, at most ${MAX_URL_LENGTH} bytes are read`)
  if (request.rawHeaders.length > MAX_HEADER_LINES * 2)
    throw new DomainError('headers_too_large', `Too many header lines, at most ${MAX_HEADER_LINES} are read`)
  if (request.headers.host === undefined && request.httpVersion === '1.1')
    throw new DomainError('malformed_request', 'An HTTP/1.1 request needs a Host header')
  const repeated = repeatedHeader(request.rawHeaders)
  if (repeated !== undefined)
    throw new DomainError('validation_failed', `The header ${repeated} is given twice`, {
      errors: [{ in: 'header', pointer: repeated, code: 'repeated', message: 'must be given once' }],
    })
  checkPathEncoding(pathOf(target))
}

/** Only what can be kept: printable ASCII. */
const keptUserAgent = (text: string | undefined): string | undefined =>
  text?.replaceAll(/[^\x20-\x7e]/g, '').slice(0, MAX_USER_AGENT)

/** What traffic needs: the proxies to believe, where lines go. */
export interface TrafficOptions {
  readonly trusted: TrustedNetworks
  readonly log: Log
  readonly metrics: HttpMetrics
  /** Where the requests of agents' tokens go. */
  readonly agentRequests?: AgentRequests | undefined
}

export class Traffic {
  readonly #options: TrafficOptions
  #inFlight = 0
  #whenIdle: (() => void)[] = []

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Begins a request, whatever it holds. Never throws. */
  begin(request: IncomingMessage, response: ServerResponse): Exchange {
    const { trusted } = this.#options
    const forwarded = request.headers['x-forwarded-for']
    const exchange: Exchange = {
      requestId: requestIdOf(request.headers['x-request-id'], Date.now()),
      startedAt: performance.now(),
      clientIp: clientAddress(
        request.socket.remoteAddress,
        typeof forwarded === 'string' ? forwarded : undefined,
        trusted,
      ),
      userAgent: keptUserAgent(request.headers['user-agent']),
      route: UNMATCHED,
      credentialId: undefined,
      agentTokenId: undefined,
      credentialHeaders: undefined,
      operationId: undefined,
      rateLimitPolicy: undefined,
      rateLimit: undefined,
    }
    rememberExchange(request, exchange)
    this.#inFlight += 1
    this.#options.metrics.inFlight.set(this.#inFlight)
    response.once('close', () => this.#end(request, response, exchange))
    return exchange
  }

  /** Judges the request line and the headers. @throws DomainError */
  check(request: IncomingMessage): void {
    checkHead(request, request.url ?? '/')
  }

  /** Resolves once nothing is in flight. */
  async settled(): Promise<void> {
    if (this.#inFlight === 0) return
    await new Promise<void>(resolve => this.#whenIdle.push(resolve))
  }

  #end(request: IncomingMessage, response: ServerResponse, exchange: Exchange): void {
    const { log, metrics } = this.#options
    const milliseconds = performance.now() - exchange.startedAt
    const status = response.writableFinished ? response.statusCode : 499 // the client went away before its answer
    const { route } = exchange
    const method = request.method ?? ''
    metrics.duration.observe({ method, route, status }, milliseconds / 1000)
    const fields = {
      request_id: exchange.requestId,
      method,
      route,
      status,
      ms: Math.round(milliseconds * 10) / 10,
      client_ip: exchange.clientIp,
      credential_id: exchange.credentialId,
      operation_id: exchange.operationId,
    }
    if (route === '/healthz' || route === '/readyz') log.debug(fields, 'Request')
    else log.info(fields, 'Request')
    this.#noteAgent(exchange, method, request.url, status)
    this.#inFlight -= 1
    metrics.inFlight.set(this.#inFlight)
    if (this.#inFlight === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #noteAgent(
    { agentTokenId, clientIp, route }: Exchange,
    method: string,
    url: string | undefined,
    status: number,
  ): void {
    if (agentTokenId === undefined) return
    // Without the query, which may hold what is nobody's business.
    const path = SECRET_PARAMETER.test(route) ? route : pathOf(url ?? '/')
    this.#options.agentRequests?.record({ tokenId: agentTokenId, method, path, status, clientIp })
  }
}
