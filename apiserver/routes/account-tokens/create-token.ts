import { createToken as create } from '../../commands/create-token.ts'
import type { Handlers } from '../../context.ts'

export const createToken: Handlers['createToken'] = ({ body, call }, context) => create(context, call, body)
