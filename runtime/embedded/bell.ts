/**
 * Wakes one sleeper. A ring while nobody sleeps is kept, so that "silence, read, sleep" never sleeps through a change.
 */
export class Bell {
  #rung = false
  #wake: (() => void) | undefined

  ring(): void {
    this.#rung = true
    this.#wake?.()
  }

  /** Forgets earlier rings. Call it before reading, never after. */
  silence(): void {
    this.#rung = false
  }

  /** Resolves at the next ring, at once if there was one, or after the time. */
  async heard(timeoutMs: number): Promise<void> {
    if (this.#rung) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }
}
