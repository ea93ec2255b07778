/**
 * When tokens were last used, written behind the requests: at most once a minute for each token, many at once, and never
 * in the way. A statement a request would queue a busy token's requests behind each other.
 */
import type { Log } from '../../runtime/log/log.ts'
import { touchTokens } from '../store/credentials.ts'
import type { Database } from '../store/database.ts'

const FLUSH_MS = 250
const MAX_MARKED = 10_000

export class LastUsed {
  readonly #database: Database
  readonly #log: Log
  readonly #marked = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(database: Database, log: Log) {
    this.#database = database
    this.#log = log
  }

  /** Notes that a token was used just now. Beyond a cap it is dropped. */
  mark(tokenId: string): void {
    if (this.#marked.size >= MAX_MARKED) return
    this.#marked.add(tokenId)
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Writes what is noted; never throws. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const ids = [...this.#marked]
    this.#marked.clear()
    if (ids.length > 0) this.#writing = this.#writing.then(() => this.#write(ids))
    await this.#writing
  }

  async #write(ids: readonly string[]): Promise<void> {
    try {
      await this.#database.transaction(sql => touchTokens(sql, ids))
    } catch (error) {
      this.#log.warn({ err: error, tokens: ids.length }, 'Cannot write when tokens were last used')
    }
  }
}
