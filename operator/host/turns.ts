/** Work on one thing, one piece after another, in the order asked for. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  get busy(): boolean {
    return this.#waiting > 0
  }

  take<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const turn = this.#last.then(work).finally(() => this.#waiting--)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}
