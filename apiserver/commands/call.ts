/** Who calls, and what they called: everything of a request that outlives its parsing. */
import type { CredentialKind, Role } from '../../lib/model/credential.ts'
import type { Scope, Target } from '../../lib/model/scope.ts'
import type { Sql } from '../store/sql.ts'

/** A caller whose credential was checked. Identity comes from nowhere else. */
export interface Principal {
  readonly kind: CredentialKind
  /** What audit events and operations name: `user:<id>` or `apikey:<id>`. */
  readonly subject: string
  readonly userId: string | undefined
  readonly credentialId: string
  readonly isOperator: boolean
  /** The role in the organization that the route names, read in the same statement as the credential; undefined: no member. */
  readonly role: Role | undefined
  /** The one organization that the credential reaches: of single sign-on, and of tokens that are bound; undefined: all of its user's. */
  readonly boundTo?: string | undefined
  /** What the credential is limited to beside the role; undefined: to nothing. Read from its row, never from its text. */
  readonly scopes: readonly Scope[] | undefined
  /** Of a session: puts its next token in force with the transaction, and answers the headers that tell it. Called by `steppingUp`. */
  readonly renewToken?: (sql: Sql) => Promise<Readonly<Record<string, string>>>
}

/** A call of somebody who is not known, or not known yet. */
export interface OpenCall {
  readonly requestId: string
  readonly clientIp: string
  /** What limits count the address by: of an IPv6 one its network. */
  readonly clientKey: string
  /** What the client calls itself, cut to what can be kept. */
  readonly userAgent: string | undefined
  /** Who calls, where a public route looks at a credential and one was sent. */
  readonly caller?: Principal | undefined
  readonly method: string
  /** The route's template, e.g. `/v1/organizations/{org}`. */
  readonly route: string
}

/** One API call. */
export interface Call extends OpenCall {
  readonly principal: Principal
  /** The organization that the request names, by path, query, body or header; undefined where a route names none. */
  readonly organizationId?: string | undefined
  /** The narrowest thing that the request names, which scopes are judged by. */
  readonly target?: Target | undefined
  readonly pathParams: Readonly<Record<string, string>>
  /** The raw Idempotency-Key, quotes stripped; undefined when none was sent. */
  readonly idempotencyKey: string | undefined
  /** Has the answer, whatever it becomes, tell the caller something about their credential, in headers. */
  readonly tell?: (headers: Readonly<Record<string, string>>) => void
  /** SHA-256 of the canonical body (sorted keys, after defaults) and query. */
  readonly contentHash: Buffer
}

/** An answer, ready to be sent and to be kept for replays. */
export interface Reply<Status extends number = number, Body = unknown> {
  readonly status: Status
  readonly headers?: Readonly<Record<string, string>>
  /** undefined: no body (204). A Buffer is JSON already and sent as it is. */
  readonly body?: Body | Buffer
}
