import type { SsoRecord } from '../contract/sso.ts'
import type { SsoConfigurationRow } from '../store/sso-configurations.ts'

/** @param redirectUri undefined: there is no console to come back to */
export const ssoView = (row: SsoConfigurationRow, redirectUri: string | undefined): SsoRecord => ({
  organization_id: row.organizationId,
  issuer: row.issuer,
  client_id: row.clientId,
  default_role: row.defaultRole,
  redirect_uri: redirectUri ?? null,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
