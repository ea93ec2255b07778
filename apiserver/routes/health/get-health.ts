import type { Handlers } from '../../context.ts'

export const getHealth: Handlers['getHealth'] = async () => ({ status: 200, body: { status: 'ok' } })
