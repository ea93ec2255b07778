/** Sign-ins at identity providers of organizations that are under way: digests alone are kept of what is secret in them. */
import type { Sql } from '../sql.ts'

export interface SsoFlow {
  readonly organizationId: string
  /** Of the configuration that it began with. */
  readonly revision: string
  /** The provider was asked to let the person prove anew who they are. */
  readonly reauthenticates: boolean
}

/** What finds a flow: both are brought back, one through the provider and one by the browser. */
export interface SsoFlowKeys {
  readonly stateDigest: Buffer
  readonly flowDigest: Buffer
}

const INSERT = `insert into sso_flows (state_digest, flow_digest, organization_id, revision, reauthenticates, expires_at)
  values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6)) returning expires_at as "expiresAt"`
/** Answers when it ends. */
export const insertSsoFlow = async (
  sql: Sql,
  flow: SsoFlow & SsoFlowKeys & { readonly validSeconds: number },
): Promise<Date> => {
  const { stateDigest, flowDigest, organizationId, revision, reauthenticates, validSeconds } = flow
  const values = [stateDigest, flowDigest, organizationId, revision, reauthenticates, validSeconds]
  const row = await sql.row<{ expiresAt: Date }>(INSERT, values)
  if (row === undefined) throw new Error('A sign-in was not begun')
  return row.expiresAt
}

const SPEND = `delete from sso_flows where state_digest = $1 and flow_digest = $2 and expires_at > now()
  returning organization_id as "organizationId", revision, reauthenticates`
/** Takes a flow, once. Undefined: unknown, taken, too old, or begun by another browser, for which it stays. */
export const spendSsoFlow = (sql: Sql, { stateDigest, flowDigest }: SsoFlowKeys): Promise<SsoFlow | undefined> =>
  sql.row<SsoFlow>(SPEND, [stateDigest, flowDigest])

const SWEEP = `delete from sso_flows where ctid = any (array(
  select ctid from sso_flows where expires_at <= now() limit 1000 for update skip locked))`
/** Forgets those that ran out. */
export const sweepSsoFlows = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
