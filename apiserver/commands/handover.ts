import type { Links } from '../links.ts'
import type { TokenRow } from '../store/tokens.ts'

/** What is told of an agent's token beside its record: a text for the agent, and how the token is ended. */
export const handover = (
  links: Links,
  row: TokenRow,
  token: string,
): { readonly agent_message: string; readonly revoke_url: string } => {
  const url = links.call(`/v1/account/tokens/${row.id}`)
  const until = row.expiresAt === null ? 'until it is revoked' : `until ${row.expiresAt.toISOString()}`
  const where = row.organizationId === null ? '' : ` in the organization ${row.organizationId}`
  return {
    revoke_url: url,
    agent_message: [
      `You may call the API with this token${where}: ${token}`,
      `Send it as the header Authorization: Bearer <token>. It may ${(row.scopes ?? []).join(', ')}, ${until}.`,
      `Every request made with it is recorded. Keep it out of files, logs and commits. When you are done, end it: DELETE ${url} with the same header and an Idempotency-Key.`,
    ].join('\n'),
  }
}
