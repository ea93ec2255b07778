/** What commands need, constructed once by the server's context. */
import type { EnvironmentSpec } from '../../crds/environment.ts'
import type { EnvironmentKind } from '../../lib/model/environment.ts'
import type { RequestVerb } from '../../lib/model/operation.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import type { Links } from '../links.ts'
import type { Database } from '../store/database.ts'

/** What the plan grants. An absent cap is none. */
export interface Plan {
  /** The figures that a new environment of a kind gets. */
  readonly resources: Readonly<Record<EnvironmentKind, NonNullable<EnvironmentSpec['resources']>>>
  readonly caps: {
    readonly projectsPerOrganization?: number | undefined
    readonly environmentsPerOrganization?: number | undefined
    readonly environmentsPerProject?: number | undefined
  }
}

export interface CommandSettings {
  readonly plan: Plan
  /** Hours that a preview lives when its creator says nothing; 0: it does not expire. */
  readonly previewDefaultTtlHours: number
  /** How long an operation may take before it ends as failed, in seconds. */
  readonly operationDeadlineSeconds: Readonly<Record<RequestVerb, number>>
  readonly links: Links
  /** Everybody may create organizations, not only operators. */
  readonly publicSignup: boolean
  /** The identity provider that says who people are; undefined: the built-in login does. */
  readonly issuer?: string | undefined
  /** How long PATCH and renew wait until the resource store holds the change. */
  readonly writeThroughWaitMs: number
}

export interface CommandDependencies {
  readonly database: Database
  readonly store: ResourceStore
  readonly settings: CommandSettings
  /** Half of what seals replies that hold a secret; derived from the master key. 32 bytes. */
  readonly sealingKey: Buffer
  /** Makes digests of the contents of requests; derived from the master key. 32 bytes. */
  readonly contentKey: Buffer
  /** Called after an intent was committed for an environment, named by its row: a hint that may be lost. */
  readonly wakeDispatcher: (environmentRow: string) => void
  readonly log: Log
}
