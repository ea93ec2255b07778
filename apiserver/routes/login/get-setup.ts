import { readSetup } from '../../commands/login/set-up.ts'
import type { Handlers } from '../../context.ts'

export const getSetup: Handlers['getSetup'] = (_input, { login }) => readSetup(login)
