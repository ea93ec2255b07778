import { removeMember as remove } from '../../commands/remove-member.ts'
import type { Handlers } from '../../context.ts'

export const removeMember: Handlers['removeMember'] = ({ params, call }, context) =>
  remove(context, call, { organizationId: params.org, subject: params.subject })
