/**
 * How often each client address tried lately, and each account was tried, in this process alone: what a flood of guesses costs is
 * paid from memory. It orders who waits for whom; limits and locks are counted in the database.
 */

/** Two halves are kept: a try is remembered for five to ten minutes. */
const HALF_MS = 300_000
/** Of a half, so that names without number fill no memory; then the older half is forgotten early. */
const MOST_NAMES = 50_000
/** When somebody who was turned away may come again, in seconds. */
export const COME_AGAIN_SECONDS = 1
/** Clocks and timers of clients are not ours. */
const EARLY_MS = 100

/** What was known before a try. */
export interface TriesBefore {
  readonly ofAddress: number
  readonly ofAccount: number
  /** It was turned away unread, and comes again as it was told: the same try, which waits already. */
  readonly isAgain: boolean
}

/** Names and what is known of them, for one to two halves. */
class Halves<Value> {
  readonly #now: () => number
  newer = new Map<string, Value>()
  older: ReadonlyMap<string, Value> = new Map()
  #turnsAt: number

  constructor(now: () => number) {
    this.#now = now
    this.#turnsAt = now() + HALF_MS
  }

  turn(): void {
    if (this.#now() < this.#turnsAt && this.newer.size < MOST_NAMES) return
    // After a long silence both halves are old.
    this.older = this.#now() >= this.#turnsAt + HALF_MS ? new Map() : this.newer
    this.newer = new Map()
    this.#turnsAt = this.#now() + HALF_MS
  }
}

export class RecentTries {
  readonly #now: () => number
  readonly #tries: Halves<number>
  /** When an account and an address were turned away; undefined: they came again. */
  readonly #away: Halves<number | undefined>

  /** `now` is monotonic, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#tries = new Halves(now)
    this.#away = new Halves(now)
  }

  /** Counts a try of an account from an address, unless it was counted and turned away, and comes again no sooner than it was told. */
  enter(address: string, account: string): TriesBefore {
    const pair = pairOf(address, account)
    const isAgain = this.#now() - (this.#turnedAwayAt(pair) ?? Infinity) >= COME_AGAIN_SECONDS * 1000 - EARLY_MS
    this.#away.turn()
    this.#away.newer.set(pair, undefined)
    const before = (name: string): number => (isAgain ? Math.max(0, this.#of(name) - 1) : this.#count(name))
    return { ofAddress: before(`address ${address}`), ofAccount: before(`account ${account}`), isAgain }
  }

  /** Nobody had time for the try that just entered. */
  turnAway(address: string, account: string): void {
    this.#away.turn()
    this.#away.newer.set(pairOf(address, account), this.#now())
  }

  /** The try that entered was right: it counts no more. */
  takeBack(address: string, account: string): void {
    for (const name of [`address ${address}`, `account ${account}`]) {
      const lately = this.#tries.newer.get(name) ?? 0
      if (lately > 0) this.#tries.newer.set(name, lately - 1)
    }
  }

  #turnedAwayAt(pair: string): number | undefined {
    const { newer, older } = this.#away
    return newer.has(pair) ? newer.get(pair) : older.get(pair)
  }

  #of(name: string): number {
    return (this.#tries.newer.get(name) ?? 0) + (this.#tries.older.get(name) ?? 0)
  }

  #count(name: string): number {
    this.#tries.turn()
    const before = this.#of(name)
    this.#tries.newer.set(name, (this.#tries.newer.get(name) ?? 0) + 1)
    return before
  }
}

const pairOf = (address: string, account: string): string => JSON.stringify([address, account])
