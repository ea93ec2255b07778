/** The last requests of agents' tokens: a ring for each, written many at once. */
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

/** How many are kept of a token. */
export const KEPT_EVENTS = 200

export interface TokenEventRow {
  readonly id: string
  readonly at: Date
  readonly method: string
  readonly path: string
  readonly status: number
  readonly clientIp: string
}

export type NewTokenEvent = Omit<TokenEventRow, 'id'> & { readonly tokenId: string }

const INSERT = `insert into token_events (token_id, at, method, path, status, client_ip)
  select e.* from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::int[], $6::text[])
    as e (token_id, at, method, path, status, client_ip) join tokens t on t.id = e.token_id for key share of t`
const TRIM = `delete from token_events where id in (
  select id from (select id, row_number() over (partition by token_id order by at desc, id desc) as age
    from token_events where token_id = any($1)) ranked
  where age > ${KEPT_EVENTS})`
/** Adds events, but of tokens that were forgotten meanwhile, and forgets what is beyond the newest 200 of each token. */
export const insertTokenEvents = async (sql: Sql, events: readonly NewTokenEvent[]): Promise<void> => {
  await sql.rows(INSERT, [
    events.map(event => event.tokenId),
    events.map(event => event.at),
    events.map(event => event.method),
    events.map(event => event.path),
    events.map(event => event.status),
    events.map(event => event.clientIp),
  ])
  await sql.rows(TRIM, [[...new Set(events.map(event => event.tokenId))]])
}

const LIST = `select e.id::text as id, ${columns('e', ['at', 'method', 'path', 'status', 'client_ip'])}
  from token_events e where e.token_id = $1 and ($2::timestamptz is null or (e.at, e.id) < ($2, $3::bigint))
  order by e.at desc, e.id desc limit least($4::int, ${KEPT_EVENTS} + 1)`
/** A token's requests, newest first. */
export const listTokenEvents = async (
  sql: Sql,
  tokenId: string,
  request: PageRequest,
): Promise<Page<TokenEventRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<TokenEventRow>(LIST, [tokenId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, ({ at, id }) => ({ createdAt: at, id }))
}
