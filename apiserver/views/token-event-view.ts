import type { TokenEventRecord } from '../contract/account-tokens.ts'
import type { TokenEventRow } from '../store/token-events.ts'
import { epochSeconds } from './epoch-seconds.ts'

/** One request of an agent's token. */
export const tokenEventView = (row: TokenEventRow): TokenEventRecord => ({
  method: row.method,
  path: row.path,
  status: row.status,
  client_ip: row.clientIp,
  at: epochSeconds(row.at),
})
