/**
 * Says the heads of the audit log's chains in the log, which lies elsewhere: against whoever rewrites a chain from some point on,
 * its head included, stands what was said of it before.
 */
import type { Log } from '../runtime/log/log.ts'
import { ACCOUNT_CHAIN, listChainHeads } from './store/audit-chain.ts'
import type { Database } from './store/database.ts'

const EVERY_MS = 3_600_000

export interface AuditHeads {
  /** Says the heads that have moved since they were said last, once an hour however often it is called; at first all of them. */
  say(): Promise<void>
}

/** Of one replica. `now` is in milliseconds and only goes forward. */
export const auditHeads = (database: Database, log: Log, now: () => number = () => performance.now()): AuditHeads => {
  const said = new Map<string, number>()
  let due = now()
  return {
    say: async () => {
      if (now() < due) return
      for (const { organizationId, lastId, lastHash } of await listChainHeads(database)) {
        if (said.get(organizationId) === lastId) continue
        const chain = organizationId === ACCOUNT_CHAIN ? 'accounts' : organizationId
        log.info({ part: 'audit', chain, event: lastId, hash: lastHash.toString('hex') }, 'Head of an audit chain')
        said.set(organizationId, lastId)
      }
      due = now() + EVERY_MS
    },
  }
}
