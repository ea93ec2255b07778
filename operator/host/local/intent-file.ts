import { Turns } from '../turns.ts'
import { type Intent, writeIntent } from './intent.ts'

/** An intent in memory and on disk. Memory changes at once; writes follow in order, each of the newest state. */
export class IntentFile {
  readonly #file: string
  readonly #writes = new Turns()
  #current: Intent
  #written = ''

  constructor(file: string, current: Intent) {
    this.#file = file
    this.#current = current
  }

  get current(): Intent {
    return this.#current
  }

  /** Changes it; returns once that is on disk. A failed write is made up for by the next one. */
  change(change: (before: Intent) => Intent): Promise<void> {
    this.#current = change(this.#current)
    return this.#writes.take(async () => {
      const text = JSON.stringify(this.#current)
      if (text === this.#written) return
      await writeIntent(this.#file, this.#current)
      this.#written = text
    })
  }
}
