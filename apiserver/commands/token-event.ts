import type { NewAccountEvent, NewAuditEvent } from '../store/audit.ts'
import type { TokenRow } from '../store/tokens.ts'
import type { Call } from './call.ts'
import { accountEvent, callEvent } from './call-events.ts'

/** What is told of a token in either log, as an `Outcome` takes it. */
export type TokenEvents = { readonly audit: [NewAuditEvent] } | { readonly accountEvents: [NewAccountEvent] }

/**
 * A token's begin or end: of one that is bound to an organization in its audit log, where admins see what acts there; of others,
 * which concern their user alone, in the log of sign-ins.
 */
export const tokenEvents = (
  call: Call,
  action: 'create_token' | 'revoke_token',
  { id, userId, organizationId }: Pick<TokenRow, 'id' | 'userId' | 'organizationId'>,
  parameters: Readonly<Record<string, unknown>>,
): TokenEvents => {
  const told = { token_id: id, ...parameters }
  return organizationId === null
    ? { accountEvents: [accountEvent(call, action, userId, told)] }
    : { audit: [callEvent(call, action, { organizationId, resourceKind: 'token', resourceId: id }, told)] }
}
