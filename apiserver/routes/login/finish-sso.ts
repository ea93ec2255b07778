import { finishSso as finish } from '../../commands/sso/finish-sso.ts'
import type { Handlers } from '../../context.ts'

export const finishSso: Handlers['finishSso'] = ({ body, call }, { login }) => finish(login, call, body)
