import { revokeApiKey as revoke } from '../../commands/revoke-api-key.ts'
import type { Handlers } from '../../context.ts'

export const revokeApiKey: Handlers['revokeApiKey'] = ({ params, call }, context) =>
  revoke(context, call, { organizationId: params.org, id: params.api_key })
