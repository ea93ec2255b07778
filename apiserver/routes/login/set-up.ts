import { setUp as make } from '../../commands/login/set-up.ts'
import type { Handlers } from '../../context.ts'

export const setUp: Handlers['setUp'] = ({ body, call }, { login }) => make(login, call, body)
