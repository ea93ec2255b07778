import { createEnvironment as create } from '../../commands/create-environment.ts'
import type { Handlers } from '../../context.ts'

export const createEnvironment: Handlers['createEnvironment'] = ({ body, call }, context) => create(context, call, body)
