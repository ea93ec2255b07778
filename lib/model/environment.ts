/** The words of an environment: its kinds, data modes, phases and the moves between phases. */

/** `production` serves live traffic, `staging` is long-lived, `preview` is swept when it expires. */
export const ENVIRONMENT_KINDS = ['production', 'staging', 'preview'] as const
export type EnvironmentKind = (typeof ENVIRONMENT_KINDS)[number]

/** What a clone takes from its source: everything, everything with secrets scrubbed, or no rows. */
export const DATA_MODES = ['snapshot', 'sanitized', 'schema_only'] as const
export type DataMode = (typeof DATA_MODES)[number]

export const PHASES = [
  'requested',
  'provisioning',
  'ready',
  'suspended',
  'updating',
  'failed_recoverable',
  'deleting',
  'deleted',
] as const
export type Phase = (typeof PHASES)[number]

/**
 * The legal moves. Never ready yet: requested -> provisioning -> ready, provisioning <-> failed_recoverable.
 * Ever ready: never `provisioning` again; ready <-> updating, ready <-> suspended, updating <-> failed_recoverable,
 * suspended -> failed_recoverable when a resume fails, failed_recoverable or updating -> suspended on a suspend.
 * Deletion from every phase; `deleted` is final.
 */
export const PHASE_MOVES: Readonly<Record<Phase, readonly Phase[]>> = {
  requested: ['provisioning', 'deleting'],
  provisioning: ['ready', 'failed_recoverable', 'deleting'],
  ready: ['suspended', 'updating', 'deleting'],
  suspended: ['ready', 'failed_recoverable', 'deleting'],
  updating: ['ready', 'suspended', 'failed_recoverable', 'deleting'],
  failed_recoverable: ['provisioning', 'updating', 'suspended', 'deleting'],
  deleting: ['deleted'],
  deleted: [],
}

/**
 * Whether an environment may go from one phase to another; staying is always allowed.
 * @public the rule that every test of the operator holds it to
 */
export const isLegalMove = (from: Phase, to: Phase): boolean => from === to || PHASE_MOVES[from].includes(to)

/** What happens to the data when an environment is deleted: kept for a while in a known place, or removed. */
export const DELETION_POLICIES = ['Retain', 'Delete'] as const
export type DeletionPolicy = (typeof DELETION_POLICIES)[number]

/** Production data is retained, everything else is removed, unless the caller says otherwise. */
export const defaultDeletionPolicy = (kind: EnvironmentKind): DeletionPolicy =>
  kind === 'production' ? 'Retain' : 'Delete'

/** Previews are scrubbed by default, everything else is a full copy. */
export const defaultDataMode = (kind: EnvironmentKind): DataMode => (kind === 'preview' ? 'sanitized' : 'snapshot')

/** The longest time to live that can be asked for, in hours (a year). */
export const MAX_TTL_HOURS = 8760

/** The only Postgres major version of this release. */
export const POSTGRES_MAJOR = 17
/** The port at which it answers where each one has an address of its own. */
export const POSTGRES_PORT = 5432
