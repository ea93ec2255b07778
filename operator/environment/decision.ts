import type { EnvironmentStatus } from '../../crds/environment.ts'
import type { Action } from './action.ts'

export interface Decision {
  /** The whole status as it should stand; it is reported before the action is begun. */
  readonly status: EnvironmentStatus
  readonly action: Action | undefined
  /** When to look again if nothing else happens; undefined: only when something changes. */
  readonly requeueAfterMs: number | undefined
}
