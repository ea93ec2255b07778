import { createHash } from 'node:crypto'
import { createServer } from 'node:net'

/** First and last port that may be given. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/** Whether nobody listens on a port of an address at this moment. */
export const isPortFree = (address: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const listener = createServer()
    listener.once('error', () => resolve(false))
    listener.listen({ host: address, port, exclusive: true }, () => listener.close(() => resolve(true)))
  })

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

  /** @throws Error when no port of the range is left */
  async give(owner: string): Promise<number> {
    const size = this.#range.last - this.#range.first + 1
    for (let step = 0; step < size; step++) {
      const port = this.#range.first + ((this.#begin + step) % size)
      if (this.#owners.has(port)) continue
      // Taken before asking: another call must not get it while we wait.
      this.#owners.set(port, owner)
      if (await isPortFree(this.#address, port)) return port
      this.#owners.delete(port)
    }
    throw new Error(`Cannot give a port: all of ${this.#range.first}-${this.#range.last} are taken`)
  }
}
