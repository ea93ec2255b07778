import { revokeToken as revoke } from '../../commands/revoke-token.ts'
import type { Handlers } from '../../context.ts'

export const revokeToken: Handlers['revokeToken'] = ({ params, call }, context) => revoke(context, call, params.token)
