import type { Clock } from '../runtime/controller/clock.ts'

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** Lets everything that can run without time passing run: promises, and what they start. */
export const settle = async (): Promise<void> => {
  for (let round = 0; round < 3; round += 1) await new Promise(resolve => setImmediate(resolve))
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = 0
  #timers: Timer[] = []

  now(): number {
    return this.#now
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), callback }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  /** Timers that have not fired. */
  get pending(): number {
    return this.#timers.length
  }

  /** Moves time without giving promises a turn. */
  advanceNow(ms: number): void {
    const until = this.#now + ms
    for (let next = this.#due(until); next !== undefined; next = this.#due(until)) this.#fire(next)
    this.#now = until
  }

  /** Moves time, firing each timer in order and letting what it woke run before the next. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms
    await settle()
    for (let next = this.#due(until); next !== undefined; next = this.#due(until)) {
      this.#fire(next)
      await settle()
    }
    this.#now = until
    await settle()
  }

  #due(until: number): Timer | undefined {
    return this.#timers.filter(timer => timer.at <= until).sort((a, b) => a.at - b.at)[0]
  }

  #fire(timer: Timer): void {
    this.#timers = this.#timers.filter(other => other !== timer)
    this.#now = Math.max(this.#now, timer.at)
    timer.callback()
  }
}
