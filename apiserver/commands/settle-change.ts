/** The end of a change that is written through: called by the dispatcher once the store holds it. */
import { insertAuditEvent } from '../store/audit.ts'
import { type EnvironmentRow, lockEnvironmentById } from '../store/environments.ts'
import type { PendingIntent } from '../store/pending-intents.ts'
import type { Sql } from '../store/sql.ts'
import { answerChange, applyChange, changeFate, type SpecChange } from '../store/written-through.ts'
import { environmentView } from '../views/environment-view.ts'
import { environmentResource } from './call-events.ts'

const isOver = (state: string | undefined): boolean => state !== 'pending' && state !== 'cancelled'

/**
 * Records a change that the store holds: row, answer and audit event, in one transaction and once. `generation` is that
 * of the resource with it, or a later one.
 */
export const settleChange = async (sql: Sql, intent: PendingIntent, generation: number): Promise<void> => {
  const { call, intentId } = intent
  // The row first, as everywhere; the audit event's lock is the last one taken.
  const environment = await lockEnvironmentById(sql, intent.environmentRow)
  if (environment === undefined || call === null || isOver((await changeFate(sql, intentId))?.state)) return
  // The command wrote the payload with this very type.
  const change: SpecChange = intent.payload
  await applyChange(sql, environment, change, generation)
  const body = environmentView(withChange(environment, change))
  await answerChange(sql, intentId, generation, Buffer.from(JSON.stringify(body)))
  await insertAuditEvent(sql, { ...environmentResource(environment), ...call })
}

/** The caller is told of their own change, also when another one has overtaken it. */
const withChange = (environment: EnvironmentRow, change: SpecChange): EnvironmentRow => {
  const { expiresAt, ...rest } = change
  return {
    ...environment,
    ...rest,
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt) }),
    updatedAt: new Date(),
  }
}
