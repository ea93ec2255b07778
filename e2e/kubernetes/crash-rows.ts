/** What an operator is asked for that dies after its changes: the same on played pods and on a node. */
import type { EnvironmentSpec } from '../../crds/environment.ts'
import type { RequestVerb } from '../../lib/model/operation.ts'

/** What is asked for, after what. */
export interface CrashRow {
  readonly verb: RequestVerb
  readonly before: readonly (readonly [verb: RequestVerb, change: Partial<EnvironmentSpec>])[]
  readonly change: Partial<EnvironmentSpec>
}

const CREATED = ['create', {}] as const
const SUSPENDED = ['suspend', { suspended: true }] as const

/** By the name of what is done. Of production the data is kept when nobody says otherwise. */
export const CRASH_ROWS: Readonly<
  Record<'create' | 'suspend' | 'resume' | 'rotate' | 'delete' | 'delete, and retain', CrashRow>
> = {
  create: { verb: 'create', before: [], change: {} },
  suspend: { verb: 'suspend', before: [CREATED], change: { suspended: true } },
  resume: { verb: 'resume', before: [CREATED, SUSPENDED], change: { suspended: false } },
  rotate: { verb: 'rotate', before: [CREATED], change: { credentialsRotation: 'once' } },
  delete: { verb: 'delete', before: [CREATED], change: {} },
  'delete, and retain': { verb: 'delete', before: [['create', { kind: 'production' }]], change: {} },
}
