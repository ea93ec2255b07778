/** Sessions of the login: only digests of their tokens are kept. */
import type { Role } from '../../../lib/model/credential.ts'
import { columns } from '../columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from '../page.ts'
import type { Sql } from '../sql.ts'

export const SESSION_METHODS = ['password', 'email_link', 'setup', 'sso'] as const
export type SessionMethod = (typeof SESSION_METHODS)[number]

/** How long a session lives, in seconds. */
export interface SessionLife {
  /** Without a request. */
  readonly idle: number
  /** In all. */
  readonly absolute: number
  /** Until its token is replaced. */
  readonly rotate: number
}

export interface SessionRow {
  readonly id: string
  readonly userId: string
  readonly method: SessionMethod
  readonly organizationId: string | null
  readonly tokenPrefix: string
  readonly clientIp: string
  readonly userAgent: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date
  readonly authenticatedAt: Date
  /** When it ends at the latest, where that is before the end of all sessions: so whoever vouched for it says. */
  readonly endsAt: Date | null
}

const SESSION = columns('s', [
  'id',
  'user_id',
  'method',
  'organization_id',
  'token_prefix',
  'client_ip',
  'user_agent',
  'created_at',
  'last_used_at',
  'authenticated_at',
  'ends_at',
])

/** A token of a session that lives, with whom it speaks for and their role in one organization. */
export interface SessionCredential extends SessionRow {
  readonly generation: number
  /** The token in hand was replaced longer ago than requests under way can last: somebody has it who should not. */
  readonly reused: boolean
  /** It was replaced a moment ago. */
  readonly replaced: boolean
  /** It is to be replaced. */
  readonly due: boolean
  readonly isOperator: boolean
  readonly role: Role | null
  /** `last_used_at` is old enough to be written anew. */
  readonly stale: boolean
  /** When it ends at the latest if nothing else is asked of it, by the database's clock. */
  readonly expiresAt: Date
}

/** The end of a session, whatever becomes of it; `absolute` is a parameter. */
const endOf = (absolute: string): string => `least(s.created_at + make_interval(secs => ${absolute}), s.ends_at)`

const GRACE = `interval '60 s'`
const FIND = `select ${SESSION}, t.generation, u.is_operator as "isOperator", m.role,
    coalesce(t.replaced_at < now() - ${GRACE}, false) as reused, t.replaced_at is not null as replaced,
    s.rotated_at <= now() - make_interval(secs => $5) as due,
    s.last_used_at < now() - make_interval(secs => least(60, $3::float8 / 10)) as stale,
    least(now() + make_interval(secs => $3), ${endOf('$4')}) as "expiresAt"
  from session_tokens t join sessions s on s.id = t.session_id join users u on u.user_id = s.user_id
    left join memberships m on m.user_id = s.user_id and m.organization_id = $2
      and (s.organization_id is null or s.organization_id = $2)
  where t.digest = $1 and u.disabled_at is null
    and s.last_used_at > now() - make_interval(secs => $3) and ${endOf('$4')} > now()`
/**
 * Looks a session up by the digest of a token that it has or had. Undefined: unknown, ended, idle or alive for too long,
 * or of a disabled user. One statement, on the database's clock, and never cached.
 */
export const findSessionCredential = (
  sql: Sql,
  digest: Buffer,
  organizationId: string | undefined,
  { idle, absolute, rotate }: SessionLife,
): Promise<SessionCredential | undefined> =>
  sql.row<SessionCredential>(FIND, [digest, organizationId ?? null, idle, absolute, rotate])

/** A session to begin. */
export type NewSession = Pick<
  SessionRow,
  'id' | 'userId' | 'method' | 'organizationId' | 'tokenPrefix' | 'clientIp' | 'userAgent'
> & {
  readonly digest: Buffer
  /** When it ends at the latest; undefined: as all do. */
  readonly endsAt?: Date | undefined
  /** When its user proved who they are, by a clock that may be ahead; undefined: now. */
  readonly authenticatedAt?: Date | undefined
}

const INSERT = `with s as (
    insert into sessions as s (id, user_id, method, organization_id, token_prefix, client_ip, user_agent, ends_at, authenticated_at)
    values ($1, $2, $3, $4, $5, $6, $7, $9, least(now(), $10)) returning *),
  t as (insert into session_tokens (digest, session_id, generation) select $8, s.id, 0 from s)
  select ${SESSION} from s`
export const insertSession = async (sql: Sql, session: NewSession): Promise<SessionRow> => {
  const { id, userId, method, organizationId, tokenPrefix, clientIp, userAgent, digest, endsAt, authenticatedAt } =
    session
  const row = await sql.row<SessionRow>(INSERT, [
    id,
    userId,
    method,
    organizationId,
    tokenPrefix,
    clientIp,
    userAgent,
    digest,
    endsAt,
    authenticatedAt,
  ])
  if (row === undefined) throw new Error('A session was not begun')
  return row
}

const ROTATE = `with s as (
    update sessions set generation = $2 + 1, rotated_at = now(), token_prefix = $4 where id = $1 and generation = $2 returning id),
  old as (update session_tokens t set replaced_at = now() from s where t.session_id = s.id and t.generation = $2)
  insert into session_tokens (digest, session_id, generation) select $3, s.id, $2 + 1 from s on conflict do nothing`
/** Puts the next token in force, once: whoever comes second with the same one changes nothing. */
export const rotateSession = async (
  sql: Sql,
  id: string,
  generation: number,
  next: { readonly digest: Buffer; readonly prefix: string },
): Promise<void> => {
  await sql.rows(ROTATE, [id, generation, next.digest, next.prefix])
}

const FIND_ROW = `select ${SESSION} from sessions s where s.id = $1 and s.user_id = $2`
export const findSession = (sql: Sql, userId: string, id: string): Promise<SessionRow | undefined> =>
  sql.row<SessionRow>(FIND_ROW, [id, userId])

const FRESH = `select authenticated_at > now() - make_interval(secs => $2) as fresh from sessions where id = $1`
/** Whether a session's user proved who they are within so many seconds. */
export const isSessionFresh = async (sql: Sql, id: string, seconds: number): Promise<boolean> =>
  (await sql.row<{ fresh: boolean }>(FRESH, [id, seconds]))?.fresh === true

const PROVE = 'update sessions set authenticated_at = now() where id = $1'
/** Notes that a session's user proved again who they are. */
export const freshenSession = async (sql: Sql, id: string): Promise<void> => {
  await sql.rows(PROVE, [id])
}

const HOLD = `select 1 from sessions where id = $1 for key share`
/** Whether a session is still there; nobody ends it until this transaction ends. */
export const holdSession = async (sql: Sql, id: string): Promise<boolean> => (await sql.row(HOLD, [id])) !== undefined

const END = `delete from sessions as s where s.id = $1 and s.user_id = $2 returning ${SESSION}`
/** Undefined: the user has no such session. */
export const endSession = (sql: Sql, userId: string, id: string): Promise<SessionRow | undefined> =>
  sql.row<SessionRow>(END, [id, userId])

const END_ANY = `delete from sessions as s where s.id = $1 returning ${SESSION}`
/** Whoever's it is. Undefined: there is no such session. */
export const endAnySession = (sql: Sql, id: string): Promise<SessionRow | undefined> =>
  sql.row<SessionRow>(END_ANY, [id])

const END_OTHERS = `delete from sessions as s where s.user_id = $1 and s.id <> $2 returning s.id`
/** Ends a user's sessions but one, and answers how many; pass an empty text to end all. */
export const endOtherSessions = async (sql: Sql, userId: string, kept: string): Promise<number> =>
  (await sql.rows(END_OTHERS, [userId, kept])).length

const DROP_OLDEST = `delete from sessions where id in (
  select id from sessions where user_id = $1 order by last_used_at desc, id desc offset $2)`
/** Ends the sessions of a user beyond a number, those first that were used longest ago. */
export const dropOldestSessions = async (sql: Sql, userId: string, kept: number): Promise<void> => {
  await sql.rows(DROP_OLDEST, [userId, kept])
}

const LIST = `select ${SESSION} from sessions s where s.user_id = $1
    and s.last_used_at > now() - make_interval(secs => $5) and ${endOf('$6')} > now()
    and ($2::timestamptz is null or (s.created_at, s.id) < ($2, $3))
  order by s.created_at desc, s.id desc limit $4`
/** A user's sessions that live, newest first. */
export const listSessions = async (
  sql: Sql,
  userId: string,
  { idle, absolute }: SessionLife,
  request: PageRequest,
): Promise<Page<SessionRow>> => {
  const after = decodeCursor(request.after)
  const values = [userId, after?.createdAt, after?.id, request.limit + 1, idle, absolute]
  return toPage(await sql.rows<SessionRow>(LIST, values), request.limit, row => row)
}

const SWEEP = `delete from sessions where id in (select id from sessions
  where last_used_at <= now() - make_interval(secs => $1) or created_at <= now() - make_interval(secs => $2)
    or ends_at <= now()
  limit 1000 for update skip locked) returning 1`
/** Forgets sessions that ended by themselves; answers how many. */
export const sweepSessions = async (sql: Sql, { idle, absolute }: SessionLife): Promise<number> =>
  (await sql.rows(SWEEP, [idle, absolute])).length
