/** Waits for the rows to say what the resource store says. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { EnvironmentStatus } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { statusesInRows } from '../store/environment-folds.ts'
import type { Sql } from '../store/sql.ts'

const POLL_MS = 20
/** One environment that cannot be folded must not keep the API of all others from being ready. */
const PATIENCE_MS = 10_000

/**
 * Resolves once every row has had the status that its resource shows now, or one that it shows later: no answer of the
 * API is older than the moment of the call. Whoever folds them may be another replica. Gives up with a warning after
 * ten seconds.
 * @throws the signal's reason when it is aborted
 */
export const rowsAgree = async (
  store: ResourceStore,
  sql: Sql,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<void> => {
  const giveUpAt = performance.now() + PATIENCE_MS
  let awaited: Set<string> | undefined
  for (;;) {
    signal.throwIfAborted()
    const shown = await statusesInStore(store).catch(() => undefined)
    const told = shown && (await statusesInRows(sql).catch(() => undefined))
    if (shown !== undefined && told !== undefined) {
      awaited ??= new Set(shown.keys())
      // Gone, or nobody's: there is nothing to wait for.
      for (const uid of awaited)
        if (!shown.has(uid) || !told.has(uid) || isDeepStrictEqual(shown.get(uid), told.get(uid))) awaited.delete(uid)
      if (awaited.size === 0) return
    }
    if (performance.now() >= giveUpAt) {
      log.warn(
        { uids: [...(awaited ?? [])].slice(0, 10) },
        'Rows do not say yet what the resource store says; going on',
      )
      return
    }
    await sleep(POLL_MS, undefined, { signal })
  }
}

const statusesInStore = async (store: ResourceStore): Promise<ReadonlyMap<string, EnvironmentStatus | null>> => {
  const { items } = await store.list(environmentType)
  return new Map(items.map(({ metadata, status }) => [metadata.uid, status ?? null]))
}
