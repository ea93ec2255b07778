/**
 * Single reading statements of all requests over a few connections, one behind the other without waiting for answers.
 * What arrives in one turn of the event loop leaves in one system call, which costs more than the statement itself; and a
 * burst of reads neither needs nor takes the connections of transactions. Each statement is a transaction of its own, so
 * the failure of one touches no other; a lost connection fails those under way on it, and reads may be sent again.
 */
import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
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
    const lose = (): void => {
      this.lost = true
    }
    this.#client.on('error', lose)
    this.#client.on('end', lose)
    this.#connected = this.#client.connect()
    this.#connected.catch(lose)
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

  /** What was asked is answered before, also where the connection is only being made: the driver would never tell those who wait for it. */
  async end(): Promise<void> {
    this.lost = true
    await this.#connected.catch(() => undefined)
    // Whoever waited asks in this turn.
    await nextTurn()
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
