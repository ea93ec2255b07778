import type { Check } from './check.ts'

/** A stop that is under way ends before a start is asked for: the two never race. */
export const notStopping: Check = ({ instance }) =>
  instance?.state === 'stopping'
    ? { reason: 'Stopping', message: 'Waiting for Postgres to stop before it is started again', outage: true }
    : undefined
