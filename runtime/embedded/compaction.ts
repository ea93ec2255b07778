import type { Log } from '../log/log.ts'
import { Bell } from './bell.ts'
import type { StoreMetrics } from './store-metrics.ts'
import type { StorePool } from './store-pool.ts'

/** How much of the change log stays: what is younger than `keepMs`, and the newest `keepAtLeast` versions anyway. */
export interface Retention {
  readonly keepMs: number
  readonly keepAtLeast: number
}

/** Changes dropped by one statement: a fraction of its deadline. */
const BATCH = 10_000

/** Drops older changes; answers how many. Harmless when several clients do it at once. */
export const compact = async (pool: StorePool, { keepMs, keepAtLeast }: Retention): Promise<number> => {
  for (let total = 0; ; ) {
    const [row] = await pool.query<{ dropped: string }>({
      name: 'compact',
      text: `select compact_changes($1 * interval '1 millisecond', $2, $3) as dropped`,
      values: [keepMs, keepAtLeast, BATCH],
    })
    const dropped = Number(row?.dropped ?? 0)
    if (dropped === 0) return total
    total += dropped
  }
}

/** Compacts now and then until stopped. */
export class Compactor {
  readonly #bell = new Bell()
  readonly #loop: Promise<void>
  #stopped = false

  constructor(pool: StorePool, retention: Retention, everyMs: number, log: Log, metrics: StoreMetrics) {
    this.#loop = this.#run(everyMs, async () => {
      try {
        metrics.compacted(await compact(pool, retention))
      } catch (error) {
        metrics.failed('compaction')
        log.warn({ err: error }, 'Cannot compact the log of resource changes, trying again later')
      }
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#loop
  }

  async #run(everyMs: number, once: () => Promise<void>): Promise<void> {
    for (;;) {
      await this.#bell.heard(everyMs)
      if (this.#stopped) return
      await once()
    }
  }
}
