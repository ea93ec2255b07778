/** Whether requests can be served: named checks, each with a deadline, asked side by side. */
import { setTimeout as sleep } from 'node:timers/promises'
import { DomainError } from '../../lib/errors/domain-error.ts'

/** Resolves when all is well; throws, or takes too long, when not. */
export type ReadinessCheck = () => Promise<void>

const DEADLINE_MS = 2000

const inTime = async (check: ReadinessCheck): Promise<void> => {
  const deadline = new AbortController()
  const late = sleep(DEADLINE_MS, undefined, { ref: false, signal: deadline.signal }).then(() => {
    throw new Error('It took too long')
  })
  late.catch(() => undefined)
  try {
    await Promise.race([check(), late])
  } finally {
    deadline.abort()
  }
}

/**
 * What was looked at, by name.
 * @throws DomainError `shutting_down`, `not_ready` (with the names of what failed)
 */
export const readiness = async (
  checks: Readonly<Record<string, ReadinessCheck>>,
  stopping: boolean,
): Promise<Readonly<Record<string, 'ok'>>> => {
  if (stopping) throw new DomainError('shutting_down', 'The server is stopping')
  const names = Object.keys(checks)
  const outcomes = await Promise.allSettled(Object.values(checks).map(inTime))
  const failed = names.filter((_name, index) => outcomes[index]?.status === 'rejected')
  if (failed.length > 0)
    throw new DomainError('not_ready', `Not ready: ${failed.join(', ')}`, { details: { failed }, retryAfterSeconds: 1 })
  return Object.fromEntries(names.map(name => [name, 'ok' as const]))
}
