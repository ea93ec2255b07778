import { putMember as put } from '../../commands/put-member.ts'
import type { Handlers } from '../../context.ts'

export const putMember: Handlers['putMember'] = ({ params, body, call }, context) =>
  put(context, call, { organizationId: params.org, subject: params.subject, role: body.role })
