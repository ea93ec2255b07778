/**
 * The time by a store's own clock, from what it says of it in its answers: what it wrote a time into is judged by the clock that
 * the time is from, and not by the clock of whoever reads it, which may be an hour off.
 */
import { type Clock, systemClock } from '../controller/clock.ts'

/** What a store says may be cut to whole seconds, so that it seems to go back by nearly one. */
const RESOLUTION_MS = 1_500

export class StoreClock {
  readonly #clock: Clock
  readonly #wallMs: () => number
  /** From our monotonic clock to the store's; never more than it is, since an answer is older than its arrival. */
  #offsetMs: number | undefined

  constructor(clock: Clock = systemClock, wallMs: () => number = Date.now) {
    this.#clock = clock
    this.#wallMs = wallMs
  }

  /** The store just said that this is the time, in epoch milliseconds. What is no time is passed over. */
  note(storeMs: number): void {
    if (!Number.isFinite(storeMs)) return
    const offsetMs = storeMs - this.#clock.now()
    const before = this.#offsetMs
    if (before === undefined || offsetMs > before || offsetMs < before - RESOLUTION_MS) this.#offsetMs = offsetMs
  }

  /** Epoch milliseconds, never ahead of the store; by this machine where the store has said nothing yet. */
  now(): number {
    return this.#offsetMs === undefined ? this.#wallMs() : Math.floor(this.#clock.now() + this.#offsetMs)
  }
}
