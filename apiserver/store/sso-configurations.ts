/** Which identity provider an organization has for single sign-on. Its secret is sealed, and read by sign-ins alone. */
import type { SealPlace } from '../../lib/credentials/seal.ts'
import type { Role } from '../../lib/model/credential.ts'
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

export interface SsoConfigurationRow {
  readonly organizationId: string
  /** Another with each change. */
  readonly revision: string
  readonly issuer: string
  readonly clientId: string
  readonly sealedSecret: string
  readonly defaultRole: Exclude<Role, 'owner'> | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Where a secret lies. */
export const ssoSecretPlace = (revision: string): SealPlace => ({
  table: 'organization_sso',
  column: 'sealed_secret',
  rowId: revision,
  version: 1n,
})

const CONFIGURATION = columns('c', [
  'organization_id',
  'revision',
  'issuer',
  'client_id',
  'sealed_secret',
  'default_role',
  'created_at',
  'updated_at',
])

const FIND = `select ${CONFIGURATION} from organization_sso c where c.organization_id = $1`
export const findSso = (sql: Sql, organizationId: string): Promise<SsoConfigurationRow | undefined> =>
  sql.row<SsoConfigurationRow>(FIND, [organizationId])

const HOLD = `${FIND} and c.revision = $2 for share`
/**
 * The configuration if it is still this one, which nobody changes until this transaction ends: a session that begins in it is
 * there for whoever changes it and ends them.
 */
export const holdSso = (sql: Sql, organizationId: string, revision: string): Promise<SsoConfigurationRow | undefined> =>
  sql.row<SsoConfigurationRow>(HOLD, [organizationId, revision])

/** A configuration to keep. */
export type NewSsoConfiguration = Omit<SsoConfigurationRow, 'createdAt' | 'updatedAt'>

const PUT = `insert into organization_sso as c (organization_id, revision, issuer, client_id, sealed_secret, default_role)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (organization_id) do update set revision = $2, issuer = $3, client_id = $4, sealed_secret = $5, default_role = $6,
    updated_at = now()
  returning ${CONFIGURATION}`
export const putSsoConfiguration = async (sql: Sql, row: NewSsoConfiguration): Promise<SsoConfigurationRow> => {
  const { organizationId, revision, issuer, clientId, sealedSecret, defaultRole } = row
  const kept = await sql.row<SsoConfigurationRow>(PUT, [
    organizationId,
    revision,
    issuer,
    clientId,
    sealedSecret,
    defaultRole,
  ])
  if (kept === undefined) throw new Error('A configuration of single sign-on was not kept')
  return kept
}

const REMOVE = `delete from organization_sso as c where c.organization_id = $1 returning ${CONFIGURATION}`
/** Undefined: there was none. */
export const removeSsoConfiguration = (sql: Sql, organizationId: string): Promise<SsoConfigurationRow | undefined> =>
  sql.row<SsoConfigurationRow>(REMOVE, [organizationId])
