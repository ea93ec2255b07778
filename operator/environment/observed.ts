import type { Environment } from '../../crds/environment.ts'
import type { ObservedInstance, SignIn } from '../host/host.ts'
import type { Wanted } from './defaults.ts'
import type { Recollection } from './recollection.ts'

/** Everything that a decision is made from, read once. Frozen; holds no secret. */
export interface Observed {
  /** Read afresh, never from a cache. */
  readonly environment: Environment
  readonly wanted: Wanted
  /** The labels of its namespace; undefined where namespaces carry none. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined
  /** undefined: not looked at, because something that comes first decides (deletion, pause, a false namespace). */
  readonly instance: ObservedInstance | undefined
  readonly credentials: 'present' | 'absent' | 'not_read'
  /** undefined: no proof was needed, or none could be tried. */
  readonly signIn: SignIn | undefined
  readonly recollection: Recollection
}
