/** What is told of an instance: pure but for two looks at its data folder. */
import { clusterState } from '../../../runtime/postgres/control-file.ts'
import { isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import type { InstanceFailure, InstanceState, ObservedInstance } from '../host.ts'
import type { InstanceFolders } from './folders.ts'
import type { Health } from './health.ts'
import type { Intent } from './intent.ts'
import type { Surroundings } from './surroundings.ts'

/** What an instance knows of itself. */
export interface SelfKnowledge {
  readonly state: InstanceState
  readonly intent: Intent
  readonly folders: InstanceFolders
  readonly health: Health
  readonly failure: InstanceFailure | undefined
  readonly startFailures: number
}

export const observationOf = (host: Surroundings, self: SelfKnowledge): ObservedInstance => {
  const { state, intent, folders, health, startFailures } = self
  const { port, launched, lineage } = intent
  const { disk } = health
  const failure = state === 'failed' || state === 'starting' ? self.failure : undefined
  return {
    state,
    initialized: isInitialized(folders.data),
    endpoint: { host: host.reach.host, port, sslmode: host.tls() === undefined ? 'disable' : 'verify-full' },
    image: `embedded:${launched?.postgres ?? host.postgres}`,
    ...(lineage === undefined ? {} : { lineage }),
    ...(failure === undefined ? {} : { failure }),
    ...(disk === undefined ? {} : { storage: disk }),
    startFailures,
    ...(state === 'stopped' ? { cleanStop: clusterState(folders.data) === 'shut down' } : {}),
  }
}
