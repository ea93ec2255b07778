import { buildConnector, Pool } from 'undici'
import type { TlsMaterial } from './sign-in.ts'

/** Calls that run at once; more wait for a connection. */
const READ_CONNECTIONS = 8
const WRITE_CONNECTIONS = 8
/** Probes begin after so long a silence: a dead peer is found within about 20 s. */
const TCP_KEEP_ALIVE_MS = 10_000
/** Below what load balancers (60 s) and the API server (90 s) allow, so that we close first. */
const IDLE_MS = 30_000
const CONNECT_TIMEOUT_MS = 5_000

/** Kept connections to one API server, apart by what must not wait for what. HTTP/1.1: undici's HTTP/2 parks and loses requests. */
export class ConnectionPools {
  readonly reads: Pool
  readonly writes: Pool
  /** A connection each, for as long as the watch lasts. */
  readonly watches: Pool
  /** Nothing else ever waits here. */
  readonly leases: Pool

  /** @param mayWrite asked at the moment when bytes of a write leave for the socket, however long they waited for it */
  constructor(origin: string, tls: TlsMaterial, mayWrite?: () => boolean) {
    const connect = buildConnector({
      ...tls,
      allowH2: false,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      timeout: CONNECT_TIMEOUT_MS,
    })
    const pool = (connections: number | null, connector = connect): Pool =>
      new Pool(origin, {
        connections,
        allowH2: false,
        pipelining: 1,
        keepAliveTimeout: IDLE_MS,
        keepAliveMaxTimeout: IDLE_MS,
        // Deadlines are the caller's; these two would cut calls and watches at times of their own.
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: connector,
      })
    this.reads = pool(READ_CONNECTIONS)
    this.writes = pool(WRITE_CONNECTIONS, mayWrite && guarded(connect, mayWrite))
    this.watches = pool(null)
    this.leases = pool(2)
  }

  get #all(): readonly Pool[] {
    return [this.reads, this.writes, this.watches, this.leases]
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

/** Connections that break rather than send what must no longer be sent: a process may sleep between a check and the next line. */
const guarded =
  (connect: buildConnector.connector, mayWrite: () => boolean): buildConnector.connector =>
  (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      const write = socket.write.bind(socket) as (...given: unknown[]) => boolean
      socket.write = (...given: unknown[]): boolean => {
        if (mayWrite()) return write(...given)
        socket.destroy(new Error('This process may no longer write'))
        return false
      }
      callback(null, socket)
    })
