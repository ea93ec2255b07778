/**
 * What an identity provider said of tokens lately, by their digests: for half a minute, never longer than a token lives; that
 * one is not good for a few seconds. Bounded in number, so that junk cannot fill the memory. A token is asked about once,
 * however many requests come with it.
 */

/** How long answers are believed, in milliseconds. */
export interface KnownFor {
  readonly goodMs: number
  readonly badMs: number
  readonly most: number
}

interface Known<T> {
  readonly value: T | undefined
  readonly until: number
}

/** What was learnt of a token; undefined: it is not good. `untilMs` is when it ends, by the clock given to the constructor. */
export interface Learnt<T> {
  readonly value: T
  readonly untilMs: number
}

export class KnownTokens<T> {
  readonly #settings: KnownFor
  readonly #now: () => number
  readonly #good = new Map<string, Known<T>>()
  readonly #bad = new Map<string, Known<T>>()
  readonly #asked = new Map<string, Promise<T | undefined>>()

  constructor(settings: KnownFor, now: () => number = Date.now) {
    this.#settings = settings
    this.#now = now
  }

  /** What is known of a token, or else what `ask` says. What it throws is not remembered. */
  find(key: string, ask: () => Promise<Learnt<T> | undefined>): Promise<T | undefined> {
    const known = this.#good.get(key) ?? this.#bad.get(key)
    if (known !== undefined && this.#now() < known.until) {
      this.#keep(known.value === undefined ? this.#bad : this.#good, key, known) // used last
      return Promise.resolve(known.value)
    }
    this.#good.delete(key)
    this.#bad.delete(key)
    const asked = this.#asked.get(key)
    if (asked !== undefined) return asked
    const answer = this.#learn(key, ask).finally(() => this.#asked.delete(key))
    this.#asked.set(key, answer)
    return answer
  }

  async #learn(key: string, ask: () => Promise<Learnt<T> | undefined>): Promise<T | undefined> {
    // What was true when it was asked counts from then.
    const { goodMs, badMs } = this.#settings
    const now = this.#now()
    const learnt = await ask()
    if (learnt === undefined) this.#keep(this.#bad, key, { value: undefined, until: now + badMs })
    else this.#keep(this.#good, key, { value: learnt.value, until: Math.min(now + goodMs, learnt.untilMs) })
    return learnt?.value
  }

  #keep(among: Map<string, Known<T>>, key: string, known: Known<T>): void {
    among.delete(key)
    if (among.size >= this.#settings.most) {
      const oldest = among.keys().next()
      if (oldest.done !== true) among.delete(oldest.value)
    }
    among.set(key, known)
  }
}
