/**
 * Whether the audit log is what was written: each event carries a hash over itself and the one before, and the head of an
 * organization's chain knows the last of them. What is hashed is said here and not asked of a function of the database's, so
 * that one which somebody replaced vouches for nothing. Who rewrites every event from some point on, and the head, leaves a
 * chain that holds: against them stands a head hash that was noted elsewhere.
 */
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

/** The chain of the events of accounts, which concern no organization. */
export const ACCOUNT_CHAIN = ''

/** The first event that is not as it was written. */
export interface BrokenLink {
  readonly id: number
  /** changed: it, or its place; missing: it was written, and is not there. */
  readonly problem: 'changed' | 'missing'
}

export interface ChainVerdict {
  readonly organizationId: string
  /** Events that were looked at. */
  readonly events: number
  /** The last event that was written, and its hash in hex: to be noted elsewhere. Undefined: there was none. */
  readonly head: { readonly id: number; readonly hash: string } | undefined
  readonly broken: BrokenLink | undefined
}

const MILLISECONDS = '(extract(epoch from e.occurred_at) * 1000)::bigint'
const AUDIT = `select e.id, e.hash, jsonb_build_array(e.organization_id, e.id, e.actor, e.action, e.resource_kind, e.resource_id,
    ${MILLISECONDS}, e.metadata)::text as content
  from audit_events e where e.organization_id = $1`
const ACCOUNT = `select e.id, e.hash, jsonb_build_array($1::text, e.id, e.type, e.user_id, e.email, e.client_ip, e.user_agent,
    ${MILLISECONDS}, e.metadata)::text as content
  from account_events e where true`

interface Link {
  readonly id: number
  readonly isSound: boolean
  readonly hash: Buffer
}

/** Each event's hash is computed from the hash that stands in the one before: a change is named, and not all that follows. */
const linksOf = (
  events: string,
): string => `with events as (${events} and e.id > $2 and e.id <= $4 order by e.id limit $5)
  select id, hash, hash = sha256(coalesce(lag(hash) over (order by id), $3::bytea) || convert_to(content, 'UTF8')) as "isSound"
  from events order by id`
const LINKS = { audit: linksOf(AUDIT), account: linksOf(ACCOUNT) }

const headOf = (events: string): string => `select h.last_id as id, h.last_hash as hash,
    sha256(convert_to('svc audit ' || $1, 'UTF8')) as first,
    (select min(e.id) from (${events}) e where e.id > coalesce(h.last_id, 0)) as beyond
  from (select 1) one left join audit_heads h on h.organization_id = $1`
const HEADS = { audit: headOf(AUDIT), account: headOf(ACCOUNT) }
interface Head {
  readonly id: number | null
  readonly hash: Buffer | null
  readonly first: Buffer
  /** An event that the head does not know, which nobody wrote by the rules. */
  readonly beyond: number | null
}

const PAGE = 5000

/** The first of a page that is not as it was written, after the event with this id. */
const brokenIn = (links: readonly Link[], after: number): BrokenLink | undefined => {
  let expected = after
  for (const { id, isSound } of links) {
    expected += 1
    if (id !== expected) return { id: expected, problem: 'missing' }
    if (!isSound) return { id, problem: 'changed' }
  }
  return undefined
}

/** Reads a chain up to its head as it is now, page by page. */
export const verifyChain = async (sql: Sql, organizationId: string): Promise<ChainVerdict> => {
  const kind = organizationId === ACCOUNT_CHAIN ? 'account' : 'audit'
  const head = await sql.row<Head>(HEADS[kind], [organizationId])
  if (head === undefined) throw new Error('A query for one row answered none')
  const lastId = head.id ?? 0
  const known = head.hash === null ? undefined : { id: lastId, hash: head.hash.toString('hex') }
  let [at, previous] = [0, head.first]
  while (at < lastId) {
    const page = await sql.rows<Link>(LINKS[kind], [organizationId, at, previous, lastId, PAGE])
    const broken = brokenIn(page, at) ?? (page.length === 0 ? { id: at + 1, problem: 'missing' as const } : undefined)
    if (broken !== undefined) return { organizationId, events: broken.id - 1, head: known, broken }
    const last = page.at(-1)
    if (last === undefined) break
    ;[at, previous] = [last.id, last.hash]
  }
  const isWhole = head.hash === null || previous.equals(head.hash)
  const oddOne = isWhole ? head.beyond : at
  const broken = oddOne === null ? undefined : { id: oddOne, problem: 'changed' as const }
  return { organizationId, events: at, head: known, broken }
}

/** The head of a chain. */
export interface ChainHead {
  readonly organizationId: string
  readonly lastId: number
  readonly lastHash: Buffer
}

const CHAINS = `select ${columns('h', ['organization_id', 'last_id', 'last_hash'])} from audit_heads h
  where h.last_hash is not null order by h.organization_id`
/** Every chain there is, that of accounts first. */
export const listChainHeads = (sql: Sql): Promise<readonly ChainHead[]> => sql.rows<ChainHead>(CHAINS)
