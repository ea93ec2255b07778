/** What the thread that renews a lease and the one that works share: whether we lead, and since when our term counts. */

/** Milliseconds that only rise, the same in every thread. */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000

/** Whether and since when we lead: written by one thread, read by another without waiting. */
export class LeaseTerm {
  /** Microseconds of the monotonic clock and of the wall clock; 0: never led. */
  readonly #cells: BigInt64Array<SharedArrayBuffer>
  readonly #deadlineMs: number

  constructor(memory: SharedArrayBuffer, renewDeadlineMs: number) {
    this.#cells = new BigInt64Array(memory)
    this.#deadlineMs = renewDeadlineMs
  }

  static memory(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)
  }

  /** We lead, as of that moment of the monotonic clock. */
  renewed(asOfMs: number): void {
    const agoMs = monotonicMs() - asOfMs
    Atomics.store(this.#cells, 1, BigInt(Math.round((Date.now() - agoMs) * 1000)))
    Atomics.store(this.#cells, 0, BigInt(Math.round(asOfMs * 1000)))
  }

  /** We no longer lead. */
  ended(): void {
    Atomics.store(this.#cells, 0, 0n)
  }

  /** How long ago our term was renewed; Infinity when we do not lead. */
  ageMs(): number {
    const renewed = Atomics.load(this.#cells, 0)
    if (renewed === 0n) return Infinity
    // A machine that slept has a monotonic clock that slept too: whichever says more.
    const wallMs = Date.now() - Number(Atomics.load(this.#cells, 1)) / 1000
    return Math.max(monotonicMs() - Number(renewed) / 1000, wallMs)
  }

  /** Whether what we do now is done as the leader. */
  holds(): boolean {
    return this.ageMs() < this.#deadlineMs
  }
}
