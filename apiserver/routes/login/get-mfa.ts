import { readMfa } from '../../commands/login/manage-totp.ts'
import type { Handlers } from '../../context.ts'

export const getMfa: Handlers['getMfa'] = ({ call }, { login }) => readMfa(login, call)
