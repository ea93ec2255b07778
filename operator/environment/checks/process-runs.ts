import type { InstanceFailure } from '../../host/host.ts'
import { startAction } from '../start-action.ts'
import type { Check, Violated } from './check.ts'

/** Reasons of a failed start that are about the disk and not about Postgres. */
const STORAGE_REASONS: ReadonlySet<string> = new Set([
  'DiskFull',
  'StorageUnavailable',
  'DataMissing',
  'VolumeInUse',
  'VolumeNotMounted',
])

/** Postgres runs and answers the host's probes. */
export const processRuns: Check = observed => {
  const { instance, environment, recollection } = observed
  switch (instance?.state) {
    case 'running':
      return undefined
    case 'absent':
    case 'stopped':
      return { reason: 'Starting', message: 'Starting Postgres', repair: startAction(observed), outage: true }
    case 'failed':
      return failed(instance.failure)
    case 'unresponsive': {
      // Waiting is safe, and most often right. Only an environment that was given up once already is restarted.
      const restart = (environment.status?.attempts ?? 1) > 1 && !recollection.attempt.stopped
      return {
        about: 'DatabaseReachable',
        reason: 'Unresponsive',
        message: 'Postgres runs but does not answer',
        outage: true,
        ...(restart ? { repair: { kind: 'stop' } } : {}),
      }
    }
    case 'starting':
    case 'stopping':
      return { reason: 'Starting', message: 'Waiting for Postgres to answer', outage: true }
    case undefined:
      return { reason: 'Unknown', message: 'The host does not say how Postgres is', outage: false }
  }
}

/** The host itself tries again, with back-off. */
const failed = (failure: InstanceFailure | undefined): Violated => {
  const { reason, message } = failure ?? { reason: 'StartFailed', message: 'Postgres does not run' }
  const about = STORAGE_REASONS.has(reason) ? 'StorageReady' : 'DatabaseReachable'
  return { about, reason, message, outage: true }
}
