import type { Check } from './check.ts'

/** No process is left: only then may an environment be called suspended. */
export const processGone: Check = ({ instance }) => {
  switch (instance?.state) {
    case 'stopped':
    case 'absent':
      return undefined
    case 'stopping':
    case undefined:
      return { reason: 'Suspending', message: 'Waiting for Postgres to stop', outage: false }
    case 'starting':
    case 'running':
    case 'unresponsive':
    case 'failed':
      return { reason: 'Suspending', message: 'Stopping Postgres', repair: { kind: 'stop' }, outage: false }
  }
}
