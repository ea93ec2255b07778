import { renewRecoveryCodes as renew } from '../../commands/login/manage-totp.ts'
import type { Handlers } from '../../context.ts'

export const renewRecoveryCodes: Handlers['renewRecoveryCodes'] = ({ body, call }, { login }) =>
  renew(login, call, body)
