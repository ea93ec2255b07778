import { Pool } from 'undici'
import type { TlsMaterial } from './cluster-access.ts'

/** Calls that run at once; more wait for a connection. */
const CALL_CONNECTIONS = 16
/** Probes begin after so long a silence: a dead peer is found within about 20 s. */
const TCP_KEEP_ALIVE_MS = 10_000
/** Below what load balancers (60 s) and the API server (90 s) allow, so that we close first. */
const IDLE_MS = 30_000
const CONNECT_TIMEOUT_MS = 5_000

/** Kept connections to one API server, apart by what must not wait for what. HTTP/1.1: undici's HTTP/2 parks and loses requests. */
export class ConnectionPools {
  readonly calls: Pool
  /** A connection each, for as long as the watch lasts. */
  readonly watches: Pool
  /** Nothing else ever waits here. */
  readonly leases: Pool

  constructor(origin: string, tls: TlsMaterial) {
    const pool = (connections: number | null): Pool =>
      new Pool(origin, {
        connections,
        allowH2: false,
        pipelining: 1,
        keepAliveTimeout: IDLE_MS,
        keepAliveMaxTimeout: IDLE_MS,
        connectTimeout: CONNECT_TIMEOUT_MS,
        // Deadlines are the caller's; these two would cut calls and watches at times of their own.
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: { ...tls, allowH2: false, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS },
      })
    this.calls = pool(CALL_CONNECTIONS)
    this.watches = pool(null)
    this.leases = pool(2)
  }

  get #all(): readonly Pool[] {
    return [this.calls, this.watches, this.leases]
  }

  /** Lets what runs end, and takes nothing new. */
  async retire(): Promise<void> {
    await Promise.all(this.#all.map(pool => pool.close()))
  }

  /** Ends everything now. */
  async destroy(): Promise<void> {
    await Promise.all(this.#all.map(pool => pool.destroy()))
  }
}
