import type { Check } from './check.ts'

/** A stop that is under way ends before a start is asked for: the two never race. */
export const notStopping: Check = ({ instance }) => {
  if (instance?.state !== 'stopping') return undefined
  // Why it does not end, where the host knows.
  if (instance.failure !== undefined) return { about: 'DatabaseReachable', ...instance.failure, outage: true }
  return { reason: 'Stopping', message: 'Waiting for Postgres to stop before it is started again', outage: true }
}
