/**
 * Single reading statements of all requests over a few connections, one behind the other without waiting for answers.
 * What arrives in one turn of the event loop leaves in one system call, which costs more than the statement itself; and a
 * burst of reads neither needs nor takes the connections of transactions. Each statement is a transaction of its own, so
 * the failure of one touches no other; a lost connection fails those under way on it, and reads may be sent again.
 */
import { Socket } from 'node:net'
import pg from 'pg'
import { endSession } from '../../runtime/postgres/end-session.ts'
import { readDriverError } from './database-error.ts'
import { sqlOn } from './sql-on.ts'

/** One connection, and how many statements it owes an answer. */
class Lane {
  readonly #client: pg.Client
  readonly #socket = new Socket()
  readonly #connected: Promise<unknown>
  #corked = false
  pending = 0
  lost = false

  constructor(config: pg.ClientConfig) {
    this.#client = new pg.Client({ ...config, stream: () => this.#socket })
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#connected = promise
    const lose = (error: unknown): void => {
      this.lost = true
      reject(error)
    }
    this.#client.on('error', lose)
    // The driver never tells whoever connects that the session was ended meanwhile.
    this.#client.on('end', () => lose(new Error('The connection ended')))
    this.#connected.catch(() => undefined)
    this.#client.connect().then(resolve, lose)
  }

  async rows<Row>(text: string, values: readonly unknown[] | undefined): Promise<readonly Row[]> {
    this.pending += 1
    try {
      await this.#connect()
      this.#gather()
      return await sqlOn(this.#client).rows<Row>(text, values)
    } finally {
      this.pending -= 1
    }
  }

  async end(): Promise<void> {
    this.lost = true
    await endSession(this.#client)
  }

  async #connect(): Promise<void> {
    try {
      await this.#connected
    } catch (error) {
      throw readDriverError(error)
    }
  }

  /** Holds back what is written until this turn of the event loop is over. */
  #gather(): void {
    if (this.#corked) return
    this.#corked = true
    this.#socket.cork()
    setImmediate(() => {
      this.#corked = false
      this.#socket.uncork()
    })
  }
}

export class SharedReads {
  readonly #config: pg.ClientConfig
  readonly #max: number
  #lanes: Lane[] = []

  /** `max` connections at most, opened when they are needed. */
  constructor(config: pg.ClientConfig, max: number) {
    this.#config = config
    this.#max = max
  }

  get connections(): number {
    return this.#lanes.length
  }

  /** @throws ConnectionLostError, pg.DatabaseError */
  rows<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]> {
    return this.#lane().rows<Row>(text, values)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#lanes.splice(0).map(lane => lane.end()))
  }

  /** An idle connection, else a new one while there may be more, else the one that owes least. */
  #lane(): Lane {
    this.#lanes = this.#lanes.some(lane => lane.lost) ? this.#lanes.filter(lane => !lane.lost) : this.#lanes
    let least: Lane | undefined
    for (const lane of this.#lanes) if (least === undefined || lane.pending < least.pending) least = lane
    if (least !== undefined && (least.pending === 0 || this.#lanes.length >= this.#max)) return least
    const lane = new Lane(this.#config)
    this.#lanes.push(lane)
    return lane
  }
}
