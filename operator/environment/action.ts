import type { DeletionPolicy } from '../../lib/model/environment.ts'
import type { InstanceSpec } from '../host/host.ts'
import type { Figures } from './defaults.ts'

/** The one thing that is done next. Each is idempotent; `apply.ts` turns it into calls of the ports. */
export type Action =
  /** Before anything else is made, so that nothing that was made can be forgotten. */
  | { readonly kind: 'add-finalizer' }
  /** Makes new passwords where none are kept; they serve the rotation that is asked for, if one is. */
  | { readonly kind: 'make-credentials'; readonly rotation: string | undefined }
  /** Makes new passwords and keeps them beside those in force. */
  | { readonly kind: 'prepare-rotation'; readonly rotation: string }
  /** Shows clients again what is in force. */
  | { readonly kind: 'publish-credentials' }
  /** The prepared passwords were proven: from now on they are those in force. */
  | { readonly kind: 'promote-credentials' }
  /** `figures` are those that `settings` stand for. */
  | { readonly kind: 'start'; readonly settings: InstanceSpec; readonly figures: Figures }
  | { readonly kind: 'stop' }
  | { readonly kind: 'apply-credentials' }
  /** The place of the data learns what to do should others take it away. */
  | { readonly kind: 'set-deletion-policy'; readonly policy: DeletionPolicy }
  /** Asks the store to delete an expired preview, provided that nobody changed it meanwhile. */
  | { readonly kind: 'expire' }
  /** Deals with the data by policy, forgets the credentials, leaves a DeletionRecord, lets the resource go. */
  | { readonly kind: 'tear-down'; readonly policy: DeletionPolicy }
  /** Lets a resource go that was never adopted: there is nothing to deal with and nothing to record. */
  | { readonly kind: 'release' }

export type ActionKind = Action['kind']
