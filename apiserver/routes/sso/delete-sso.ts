import { deleteSso as remove } from '../../commands/sso/delete-sso.ts'
import type { Handlers } from '../../context.ts'

export const deleteSso: Handlers['deleteSso'] = ({ params, call }, context) => remove(context, call, params.org)
