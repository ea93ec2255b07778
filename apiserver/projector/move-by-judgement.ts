import type { Phase } from '../../lib/model/environment.ts'
import type { Judgement } from '../../lib/model/operation.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { OpenOperation } from '../store/environment-folds.ts'
import type { EnvironmentRow } from '../store/environments.ts'
import { moveOperation } from '../store/operations.ts'
import type { Sql } from '../store/sql.ts'

/** Writes what the judgement of an open operation says, and logs its end. `phase` is the environment's, for the result. */
export const moveByJudgement = async (
  sql: Sql,
  operation: OpenOperation,
  judgement: Judgement,
  row: EnvironmentRow,
  phase: Phase,
  log: Log,
): Promise<void> => {
  const { state, attempts } = judgement
  if (judgement.state === 'failed') {
    await moveOperation(sql, operation.id, { state, attempts, error: judgement.error })
    log.info({ operationId: operation.id, error: judgement.error }, 'Operation failed')
    return
  }
  const result = {
    environment_id: row.environmentId,
    phase,
    ...(operation.kind === 'create_environment' ? { postgres_major: row.postgresMajor } : {}),
  }
  await moveOperation(sql, operation.id, { state, attempts, ...(state === 'succeeded' ? { result } : {}) })
  if (state === 'succeeded') log.info({ operationId: operation.id }, 'Operation succeeded')
}
