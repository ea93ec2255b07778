/**
 * When credentials were last used, written behind the requests: at most once a minute for each, many at once, and never
 * in the way. A statement a request would queue a busy token's requests behind each other.
 */
import type { Log } from '../../runtime/log/log.ts'
import { touchUsed, type UsedTable } from '../store/credentials.ts'
import type { Database } from '../store/database.ts'

const FLUSH_MS = 250
const MAX_MARKED = 10_000

export class LastUsed {
  readonly #database: Database
  readonly #log: Log
  readonly #marked: Readonly<Record<UsedTable, Set<string>>> = {
    tokens: new Set(),
    api_keys: new Set(),
    sessions: new Set(),
  }
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(database: Database, log: Log) {
    this.#database = database
    this.#log = log
  }

  /** Notes that a credential was used just now. Beyond a cap it is dropped. */
  mark(table: UsedTable, id: string): void {
    const marked = this.#marked[table]
    if (marked.size >= MAX_MARKED) return
    marked.add(id)
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Writes what is noted; never throws. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [table, marked] of Object.entries(this.#marked)) {
      const ids = [...marked]
      marked.clear()
      if (ids.length > 0) this.#writing = this.#writing.then(() => this.#write(table as UsedTable, ids))
    }
    await this.#writing
  }

  async #write(table: UsedTable, ids: readonly string[]): Promise<void> {
    try {
      await this.#database.transaction(sql => touchUsed(sql, table, ids))
    } catch (error) {
      this.#log.warn({ err: error, table, credentials: ids.length }, 'Cannot write when credentials were last used')
    }
  }
}
