import type { IntentRow } from '../apiserver/store/intents.ts'
import type { Sql } from '../apiserver/store/sql.ts'

const PENDING = `select id::int, seq, verb, payload, request_id as "requestId", operation_id as "operationId"
  from intents where environment_row = $1 and state = 'pending' order by seq`

/** What is to be carried for an environment, in order. */
export const pendingIntents = (
  sql: Sql,
  environmentRow: string,
): Promise<readonly Pick<IntentRow, 'id' | 'seq' | 'verb' | 'payload' | 'requestId' | 'operationId'>[]> =>
  sql.rows(PENDING, [environmentRow])
