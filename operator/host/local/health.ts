import { existsSync } from 'node:fs'
import { type ProbeAnswer, probeServer } from '../../../runtime/postgres/probe.ts'
import type { SocketAddress } from '../../../runtime/postgres/server-process.ts'
import { APP_DATABASE, OPS_ROLE } from '../database-roles.ts'
import { type Disk, readDisk } from '../disk.ts'

/** Probes in a row without an answer after which a server counts as unresponsive: one is not a change. */
export const SILENT_LIMIT = 3

/** Knocks at an instance's server; nobody signs in. */
export const knock = (address: SocketAddress, deadlineMs: number): Promise<ProbeAnswer> =>
  probeServer(address, { role: OPS_ROLE, database: APP_DATABASE }, deadlineMs)

/** A running server whose socket was removed: it makes a new one at its next start and not before. */
export const isSocketGone = ({ socketFolder, port }: SocketAddress): boolean =>
  !existsSync(`${socketFolder}/.s.PGSQL.${port}`)

/** What regular looks at one running server and its disk add up to. */
export class Health {
  #silent = 0
  #disk: Disk | undefined
  #next = 0

  get disk(): Disk | undefined {
    return this.#disk
  }

  get responsive(): boolean {
    return this.#silent < SILENT_LIMIT
  }

  /**
   * Begins anew with a server that just answered, or that never did; looks are spread, so that fifty adopted together are
   * not probed together.
   */
  begin(now: number, everyMs: number, answered = true): void {
    this.#silent = answered ? 0 : SILENT_LIMIT
    this.#next = now + everyMs * (0.5 + Math.random() / 2)
  }

  /** Whether it is time for a look; asking takes the turn. */
  isDue(now: number, everyMs: number): boolean {
    if (now < this.#next) return false
    this.#next = now + everyMs
    return true
  }

  /** @returns whether the server answered */
  async probe(address: SocketAddress, deadlineMs: number): Promise<boolean> {
    const answer = await knock(address, deadlineMs)
    const answered = answer === 'accepting' || answer === 'busy'
    this.#silent = answered ? 0 : this.#silent + 1
    return answered
  }

  /** @returns whether the disk began or ceased to be nearly full */
  async readDisk(folder: string): Promise<boolean> {
    const wasLow = this.#disk?.low === true
    this.#disk = await readDisk(folder, wasLow)
    return (this.#disk?.low === true) !== wasLow
  }
}
