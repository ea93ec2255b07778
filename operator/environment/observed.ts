import type { Environment } from '../../crds/environment.ts'
import type { ObservedInstance, SignIn } from '../host/host.ts'
import type { Wanted } from './defaults.ts'
import type { NamespaceFacts } from './namespaces.ts'
import type { Recollection } from './recollection.ts'

/** Everything that a decision is made from, read once. Frozen; holds no secret. */
export interface Observed {
  /** Never older than our own last write of it. */
  readonly environment: Environment
  readonly wanted: Wanted
  /** Its namespace; undefined where namespaces are mere names. */
  readonly namespace: NamespaceFacts | undefined
  /** undefined: not looked at, because something that comes first decides (deletion, pause, a false namespace). */
  readonly instance: ObservedInstance | undefined
  /**
   * `unpublished`: clients find something else than what is in force, or nothing. `next`: passwords of a rotation are kept
   * beside those in force; a sign-in is with them.
   */
  readonly credentials: 'present' | 'unpublished' | 'next' | 'absent' | 'not_read'
  /** The rotation that the kept passwords were made for. */
  readonly keptRotation: string | undefined
  /** undefined: no proof was needed, or none could be tried. */
  readonly signIn: SignIn | undefined
  readonly recollection: Recollection
}
