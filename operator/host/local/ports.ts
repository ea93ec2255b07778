import { createHash } from 'node:crypto'
import { tryToListen } from '../../../runtime/net/try-to-listen.ts'

/** First and last port that may be given. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/** What is the port's fault, not the address': taken, or kept from us. */
const TAKEN = new Set(['EADDRINUSE', 'EACCES'])

/**
 * Whether nobody listens on a port of an address at this moment.
 * @throws the system's error when the address itself cannot be listened on, e.g. EADDRNOTAVAIL
 */
export const isPortFree = async (host: string, port: number): Promise<boolean> => {
  const refusal = await tryToListen({ host, port })
  if (refusal === undefined) return true
  if (TAKEN.has(refusal.code ?? '')) return false
  throw refusal
}

/**
 * Gives ports out of a range, each to one owner until it is given back; an owner's port never changes. The search begins at a
 * place that depends on the seed, so that two homes on one machine seldom want the same, and skips ports others listen on.
 */
export class Ports {
  readonly #range: PortRange
  readonly #address: string
  readonly #begin: number
  readonly #owners = new Map<number, string>()

  constructor(range: PortRange, address: string, seed: string) {
    this.#range = range
    this.#address = address
    this.#begin = createHash('sha256').update(seed).digest().readUInt32BE(0)
  }

  /** Notes a port that an owner was given earlier, also one outside the range of today. */
  keep(port: number, owner: string): void {
    this.#owners.set(port, owner)
  }

  giveBack(port: number, owner: string): void {
    if (this.#owners.get(port) === owner) this.#owners.delete(port)
  }

  /** @throws Error when no port of the range is left; the system's error when the address cannot be listened on */
  async give(owner: string): Promise<number> {
    const size = this.#range.last - this.#range.first + 1
    for (let step = 0; step < size; step++) {
      const port = this.#range.first + ((this.#begin + step) % size)
      if (this.#owners.has(port)) continue
      // Taken before asking: another call must not get it while we wait.
      this.#owners.set(port, owner)
      let free = false
      try {
        free = await isPortFree(this.#address, port)
        if (free) return port
      } finally {
        if (!free) this.giveBack(port, owner)
      }
    }
    throw new Error(`Cannot give a port: all of ${this.#range.first}-${this.#range.last} are taken`)
  }
}
