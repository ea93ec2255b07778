import type { Check } from './check.ts'

/** No process is left: only then may an environment be called suspended. */
export const processGone: Check = ({ instance }) => {
  switch (instance?.state) {
    case 'stopped':
    case 'absent':
      return undefined
    case 'stopping': {
      // Why it does not end, where the host knows: a node that does not answer, mostly.
      const { failure } = instance
      if (failure !== undefined) return { about: 'DatabaseReachable', ...failure, outage: false }
      return { reason: 'Suspending', message: 'Waiting for Postgres to stop', outage: false }
    }
    case undefined:
      return { reason: 'Suspending', message: 'Waiting for Postgres to stop', outage: false }
    case 'starting':
    case 'running':
    case 'unresponsive':
    case 'failed':
      return { reason: 'Suspending', message: 'Stopping Postgres', repair: { kind: 'stop' }, outage: false }
  }
}
