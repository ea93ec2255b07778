import { startSso as start } from '../../commands/sso/start-sso.ts'
import type { Handlers } from '../../context.ts'

export const startSso: Handlers['startSso'] = ({ body, call }, { login }) => start(login, call, body)
