/** The listening server: its timeouts, and a stop that drains. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListenAddress } from '../../runtime/config/listen-address.ts'
import type { StopDelays } from '../config/config.ts'
import { answerClientError } from './client-errors.ts'
import type { Traffic } from './traffic.ts'

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000
/** Longer than the 60 s of common proxies, so that the proxy closes first. */
const KEEP_ALIVE_MS = 65_000
const MAX_HEADER_BYTES = 16 * 1024
const MAX_CONNECTIONS = 10_000

export class HttpServer {
  readonly #server: Server
  readonly #traffic: Traffic
  #draining = false
  #connections = 0
  #url: string | undefined
  #whenAlone: (() => void) | undefined

  constructor(listener: RequestListener, traffic: Traffic, problemBase: string) {
    this.#traffic = traffic
    this.#server = createServer(
      { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, connectionsCheckingInterval: 1000 },
      listener,
    )
    this.#server.headersTimeout = HEADERS_TIMEOUT_MS
    this.#server.requestTimeout = REQUEST_TIMEOUT_MS
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS
    this.#server.maxConnections = MAX_CONNECTIONS
    this.#server.on('clientError', (error, socket) => answerClientError(error, socket, problemBase))
    // Without a listener Node answers 417 with no body; the expectation is ignored instead, as RFC 9110 allows.
    this.#server.on('checkExpectation', listener)
    this.#server.on('connection', socket => {
      this.#connections += 1
      socket.once('close', () => {
        this.#connections -= 1
        if (this.#connections === 0) this.#whenAlone?.()
      })
    })
  }

  /** Whether a stop has begun: answers then close their connections, and readiness says so. */
  get draining(): boolean {
    return this.#draining
  }

  /** Listens, and answers its URL. @throws the system's error, `EADDRINUSE` for one */
  async listen(address: ListenAddress): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(address.port, address.host, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    const { address: host, port, family } = this.#server.address() as AddressInfo
    this.#url = `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`
    return this.#url
  }

  /** Where it listens, for whoever is on this machine: of all addresses, loopback. @throws Error before it listens */
  get url(): string {
    if (this.#url === undefined) throw new Error('The server does not listen yet')
    return this.#url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  }

  /**
   * Goes on answering while connections are open, each answer closing its own, so that a proxy which reuses one is told
   * instead of reset and has seen that we are not ready; then refuses new ones and finishes what is in flight. Without
   * an open connection there is nobody to tell and nothing to wait for.
   */
  async stop({ graceMs, drainMs }: StopDelays): Promise<void> {
    this.#draining = true
    await this.#aloneWithin(graceMs)
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    const deadline = sleep(drainMs, undefined, { ref: false })
    await Promise.race([this.#traffic.settled(), deadline])
    this.#server.closeIdleConnections()
    await Promise.race([closed, sleep(250, undefined, { ref: false })])
    this.#server.closeAllConnections()
    await closed
  }

  /** Waits until no connection is open, at most so long. */
  async #aloneWithin(milliseconds: number): Promise<void> {
    if (this.#connections === 0) return
    const alone = new Promise<void>(resolve => (this.#whenAlone = resolve))
    await Promise.race([alone, sleep(milliseconds, undefined, { ref: false })])
  }
}
