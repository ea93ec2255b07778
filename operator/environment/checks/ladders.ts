/** The checks in their order: each makes sense only once the ones before it are satisfied. */
import type { Check, GateCheck } from './check.ts'
import { credentialsPresent } from './credentials-present.ts'
import { credentialsRotated } from './credentials-rotated.ts'
import { dataPresent } from './data-present.ts'
import { identityMatches } from './identity-matches.ts'
import { namespaceStays } from './namespace-stays.ts'
import { notPaused } from './not-paused.ts'
import { notStopping } from './not-stopping.ts'
import { processGone } from './process-gone.ts'
import { processRuns } from './process-runs.ts'
import { settingsApplied } from './settings-applied.ts'
import { signInWorks } from './sign-in-works.ts'

/** Whether the environment is ours to touch at all. Deletion is not asked. */
export const GATES: readonly GateCheck[] = [identityMatches, namespaceStays, notPaused]

/** From nothing to a database that a client signs in to. */
export const RUNNING: readonly Check[] = [
  dataPresent,
  credentialsPresent,
  notStopping,
  settingsApplied,
  processRuns,
  signInWorks,
  credentialsRotated,
]

/** From whatever runs to nothing that runs. */
export const STOPPED: readonly Check[] = [processGone]
