import type { Check } from './check.ts'

/** Data that was once ready and is gone is never replaced by an empty database: somebody has to put it back. */
export const dataPresent: Check = ({ environment, instance }) =>
  environment.status?.everReady === true && instance?.initialized === false
    ? {
        about: 'StorageReady',
        reason: 'DataMissing',
        message: 'The data of this environment is not where it was left; it is not initialized anew',
        outage: true,
        stalled: true,
      }
    : undefined
