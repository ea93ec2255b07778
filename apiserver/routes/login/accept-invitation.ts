import { acceptInvitation as accept } from '../../commands/login/accept-invitation.ts'
import type { Handlers } from '../../context.ts'

export const acceptInvitation: Handlers['acceptInvitation'] = ({ body, call }, { login }) => accept(login, call, body)
