/** A control-plane database, a resource store, and what commands write: for tests of dispatch and projection. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import {
  type DispatchAndProjection,
  type DispatchConfig,
  startDispatchAndProjection,
} from '../apiserver/dispatch/start-dispatch-and-projection.ts'
import type { Database } from '../apiserver/store/database.ts'
import { insertEnvironment, lockEnvironment } from '../apiserver/store/environments.ts'
import type { ControlPlaneSql } from '../apiserver/store/fenced-transactions.ts'
import { cancelUntriedRequests, insertRequest } from '../apiserver/store/intents.ts'
import { failOpenOperation } from '../apiserver/store/operations.ts'
import { insertOrganization } from '../apiserver/store/organizations.ts'
import { insertProject } from '../apiserver/store/projects.ts'
import { insertChange, type SpecChange } from '../apiserver/store/written-through.ts'
import type { DeletionRecord } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment, EnvironmentSpec } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { projectNamespace } from '../crds/metadata.ts'
import { type EnvironmentPath, environmentName } from '../lib/model/identifiers.ts'
import { type RequestVerb, SUPERSEDED } from '../lib/model/operation.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { silentLog } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from './control-plane-database.ts'
import { type DispatchPlace, embeddedPlace, type OpenPlace } from './dispatch-places.ts'
import { OPERATOR_NAMESPACE, startStandinOperator } from './standin-operator.ts'

const ORGANIZATION = 'acme'
const PROJECT = 'shop'
export const NAMESPACE = projectNamespace(ORGANIZATION, PROJECT)
export const USER = 'user:usr_tester'

export const pathOf = (environmentId: string): EnvironmentPath => ({
  organizationId: ORGANIZATION,
  projectId: PROJECT,
  environmentId,
})
export const keyOfEnvironment = (environmentId: string): ResourceKey => ({
  namespace: NAMESPACE,
  name: environmentName(pathOf(environmentId)),
})

/** An environment and its operations, as far as tests look at them. */
export interface Rows {
  readonly phase: string
  readonly uid: string | null
  readonly operations: readonly {
    readonly kind: string
    readonly state: string
    readonly actor: string
    readonly error: string | null
    readonly result: unknown
  }[]
}

export interface AuditRow {
  readonly actor: string
  readonly action: string
  readonly resource: string
  readonly metadata: Readonly<Record<string, unknown>>
}

export class DispatchWorld {
  readonly controlPlane: ControlPlaneDatabase
  readonly #place: DispatchPlace
  readonly #closing: (() => Promise<unknown>)[] = []

  private constructor(controlPlane: ControlPlaneDatabase, place: DispatchPlace) {
    this.controlPlane = controlPlane
    this.#place = place
    this.#closing.push(
      () => controlPlane.database.stop(),
      () => place.close(),
    )
  }

  static async create(openPlace: OpenPlace = embeddedPlace): Promise<DispatchWorld> {
    const project = { organizationId: ORGANIZATION, projectId: PROJECT, namespace: NAMESPACE }
    const [controlPlane, place] = await Promise.all([controlPlaneDatabase(), openPlace(project)])
    const world = new DispatchWorld(controlPlane, place)
    await insertOrganization(world.database, ORGANIZATION, ORGANIZATION)
    await insertProject(world.database, {
      organizationId: ORGANIZATION,
      projectId: PROJECT,
      region: 'local',
      postgresMajor: 17,
      protectProduction: false,
      namespace: NAMESPACE,
    })
    return world
  }

  get database(): Database {
    return this.controlPlane.database
  }

  /** The client of the store that bears a name. */
  client(clientName: string): ResourceStore {
    return this.#place.client(clientName)
  }

  /** The actor of a deletion that a client asked for, as far as the store keeps it. */
  deleterActor(clientName: string): string {
    return `kubernetes:${this.#place.deletedBy(clientName) ?? 'unknown'}`
  }

  /** What somebody outside the API does. */
  get kubectl(): ResourceStore {
    return this.client('kubectl')
  }

  /** An operator at work until the world closes; one that is `paused` does nothing. */
  startOperator(): { paused: boolean } {
    const state = { paused: false }
    const operator = startStandinOperator(this.client('svc-operator'), () => state.paused)
    this.onClose(() => operator.stop())
    return state
  }

  /** A replica's dispatch and projection. */
  replica(
    options: {
      readonly store?: ResourceStore
      readonly database?: ControlPlaneSql
      readonly config?: Partial<DispatchConfig>
      readonly registry?: Registry
    } = {},
  ): DispatchAndProjection {
    const service = startDispatchAndProjection({
      database: options.database ?? this.database,
      store: options.store ?? this.client('svc-apiserver'),
      namespaces: this.#place.projectNamespaces,
      log: silentLog,
      ...(options.registry && { registry: options.registry }),
      config: {
        databaseUrl: this.controlPlane.url('svc_api'),
        operatorNamespace: OPERATOR_NAMESPACE,
        clientName: 'svc-apiserver',
        pollEveryMs: 200,
        sweepEveryMs: 50,
        leaseRenewEveryMs: 200,
        leasePollEveryMs: 50,
        ...options.config,
      },
    })
    this.#closing.push(() => service.stop())
    return service
  }

  /** Has the callback run when the world closes. */
  onClose(close: () => Promise<unknown>): void {
    this.#closing.push(close)
  }

  async close(): Promise<void> {
    for (const close of this.#closing.reverse()) await close()
  }

  /** What the create command writes. Answers the row. */
  async requestCreate(environmentId: string, spec: Partial<EnvironmentSpec> = {}): Promise<string> {
    const path = pathOf(environmentId)
    const kind = spec.kind ?? 'staging'
    return this.database.transaction(async sql => {
      const { id } = await insertEnvironment(sql, {
        ...path,
        kind,
        dataMode: 'snapshot',
        region: 'local',
        postgresMajor: 17,
        ttlHours: spec.ttlHours ?? null,
        expiresAt: spec.expiresAt === undefined ? null : new Date(spec.expiresAt),
        deletionProtection: spec.deletionProtection ?? false,
        deletionPolicy: spec.deletionPolicy ?? 'Delete',
        sourceEnvironmentId: null,
        ...{ namespace: NAMESPACE, resourceName: environmentName(path) },
      })
      await this.#open(sql, id, 'create', { ...path, kind, suspended: false, deletionPolicy: 'Delete', ...spec })
      return id
    })
  }

  /** What the suspend, resume, rotate and delete commands write; a delete supersedes. */
  async request(
    environmentId: string,
    verb: 'suspend' | 'resume' | 'rotate' | 'delete',
    deadlineSeconds = 60,
  ): Promise<void> {
    await this.database.transaction(async sql => {
      const row = await lockEnvironment(sql, pathOf(environmentId))
      if (row === undefined) throw new Error(`No environment ${environmentId}`)
      if (verb === 'delete') {
        await failOpenOperation(sql, row.id, SUPERSEDED)
        await cancelUntriedRequests(sql, row.id)
      }
      const payload = verb === 'rotate' ? { credentialsRotation: newId('rot') } : {}
      await this.#open(sql, row.id, verb, payload, deadlineSeconds)
    })
  }

  /** What the update and renew commands write, for a caller who does not wait. */
  async requestChange(environmentId: string, spec: SpecChange): Promise<void> {
    await this.database.transaction(async sql => {
      const row = await lockEnvironment(sql, pathOf(environmentId))
      if (row === undefined) throw new Error(`No environment ${environmentId}`)
      const action = spec.expiresAt === undefined ? 'update_environment' : 'renew_environment'
      const call = { actor: USER, action, metadata: { ...spec } } as const
      await insertChange(sql, { environmentRow: row.id, requestId: 'req_test', spec, call, key: undefined })
    })
  }

  requestUpdate(environmentId: string, deletionProtection: boolean): Promise<void> {
    return this.requestChange(environmentId, { deletionProtection })
  }

  async #open(
    sql: Parameters<typeof insertRequest>[0],
    environmentRow: string,
    verb: RequestVerb,
    payload: Readonly<Record<string, unknown>>,
    deadlineSeconds = 60,
  ): Promise<void> {
    const operationId = newId('op')
    await insertRequest(sql, {
      operationId,
      environmentRow,
      verb,
      payload,
      actor: USER,
      requestId: `req_${operationId}`,
      deadlineSeconds,
    })
  }

  /** The rows of an environment's latest incarnation. */
  async rows(environmentId: string): Promise<Rows> {
    const rows = await this.#findRows(environmentId)
    if (rows === undefined) throw new Error(`No environment ${environmentId}`)
    return rows
  }

  #findRows(environmentId: string): Promise<Rows | undefined> {
    return this.database.row<Rows>(
      `select e.phase, e.uid, coalesce((select jsonb_agg(jsonb_build_object('kind', kind, 'state', state, 'actor', actor,
         'error', error, 'result', result) order by seq) from operations o where o.environment_row = e.id), '[]') as operations
       from environments e where e.environment_id = $1 and e.replaced_at is null`,
      [environmentId],
    )
  }

  audit(): Promise<readonly AuditRow[]> {
    return this.database.rows<AuditRow>(
      `select actor, action, resource_id as resource, metadata from audit_events order by id`,
    )
  }

  /** The events of what nobody asked the API for. */
  async observed(): Promise<readonly AuditRow[]> {
    return (await this.audit()).filter(({ metadata }) => metadata['observed'] === true)
  }

  /** The rows once they satisfy a condition. */
  async until(environmentId: string, condition: (rows: Rows) => boolean, what = condition.toString()): Promise<Rows> {
    const nothing: Rows = { phase: 'none', uid: null, operations: [] }
    return eventually(
      async () => (await this.#findRows(environmentId)) ?? nothing,
      condition,
      `${environmentId}: ${what}`,
    )
  }

  /** What the operator left behind and nobody has read yet. */
  async deletionRecords(store: ResourceStore): Promise<readonly DeletionRecord[]> {
    return (await store.list(deletionRecordType, { namespace: OPERATOR_NAMESPACE })).items
  }

  async resource(store: ResourceStore, environmentId: string): Promise<Environment | undefined> {
    return store.get(environmentType, keyOfEnvironment(environmentId))
  }

  /** The resource of an environment that must be there. */
  async mustResource(environmentId: string): Promise<Environment> {
    const resource = await this.resource(this.kubectl, environmentId)
    if (resource === undefined) throw new Error(`There is no resource of ${environmentId}`)
    return resource
  }

  /** Waits until an environment's resource is gone. */
  async gone(environmentId: string): Promise<void> {
    const look = (): Promise<Environment | undefined> => this.resource(this.kubectl, environmentId)
    await eventually(look, seen => seen === undefined, `${environmentId} gone`)
  }

  /** An environment that nobody asked the API for. */
  createByHand(environmentId: string): Promise<Environment> {
    const spec = { ...pathOf(environmentId), kind: 'staging' as const }
    return this.kubectl.create(environmentType, { ...keyOfEnvironment(environmentId), spec })
  }
}

/** What a look answers, once it satisfies a condition. */
export const eventually = async <T>(
  look: () => Promise<T>,
  condition: (seen: T) => boolean,
  what: string,
  withinMs = 15_000,
): Promise<T> => {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const seen = await look()
    if (condition(seen)) return seen
    if (performance.now() > giveUpAt)
      throw new Error(`Not within ${withinMs} ms: ${what}; seen: ${JSON.stringify(seen)}`)
    await sleep(10)
  }
}
