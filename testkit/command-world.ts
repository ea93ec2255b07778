/** What commands need in a test: a control-plane database, users with every role, and calls as the HTTP rim makes them. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Call, Principal, Reply } from '../apiserver/commands/call.ts'
import type { CommandDependencies, CommandSettings } from '../apiserver/commands/dependencies.ts'
import { makeUser } from '../apiserver/commands/make-user.ts'
import { putOrganization } from '../apiserver/commands/put-organization.ts'
import { putProject } from '../apiserver/commands/put-project.ts'
import type { CreateEnvironmentBody } from '../apiserver/contract/environments.ts'
import { linksOf } from '../apiserver/links.ts'
import type { AuditEventRow } from '../apiserver/store/audit.ts'
import { listAuditEvents } from '../apiserver/store/audit.ts'
import type { Database, DatabaseOptions } from '../apiserver/store/database.ts'
import { findMember, putMembership } from '../apiserver/store/memberships.ts'
import type { Role } from '../lib/model/credential.ts'
import type { Phase } from '../lib/model/environment.ts'
import type { EnvironmentPath } from '../lib/model/identifiers.ts'
import { silentLog } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from './control-plane-database.ts'

const FIGURES = { cpu: '500m', memory: '256Mi', storage: '1Gi', maxConnections: 20 }

/** A console, and the API beside it. */
export const TEST_LINKS = linksOf(
  { consoleUrl: 'https://console.example.com', publicUrl: 'https://db.example.com' },
  () => {
    throw new Error('Nobody listens in this test')
  },
)

export const TEST_SETTINGS: CommandSettings = {
  plan: { resources: { production: FIGURES, staging: FIGURES, preview: FIGURES }, caps: {} },
  previewDefaultTtlHours: 72,
  operationDeadlineSeconds: { create: 600, suspend: 600, resume: 600, rotate: 600, delete: 600 },
  links: TEST_LINKS,
  publicSignup: false,
  // Longer than any load of the machine: whoever tests giving up asks impatiently.
  writeThroughWaitMs: 30_000,
}

/** The same, but for giving up on the resource store after half a second. */
export const impatient = (deps: CommandDependencies): CommandDependencies => ({
  ...deps,
  settings: { ...deps.settings, writeThroughWaitMs: 500 },
})

/** Refuses everything: for commands that have no business with the resource store. */
const NO_STORE = new Proxy({} as ResourceStore, {
  get: () => {
    throw new Error('This command must not touch the resource store')
  },
})

export interface CommandWorld {
  readonly plane: ControlPlaneDatabase
  readonly deps: CommandDependencies
  /** Environments whose dispatch was woken, in order. */
  readonly woken: string[]
  /** An operator, owner of `acme`, which has the project `shop`. */
  readonly owner: Principal
  /** Makes a user; a member of `acme` where a role is given. */
  user(role?: Role): Promise<Principal>
  /** The principal as it is after roles changed. */
  refreshed(principal: Principal, organizationId?: string): Promise<Principal>
  /** A call as the rim makes it, with a key of its own unless one is given. */
  call(principal: Principal, options?: CallOptions): Call
  /** A second API process: its own pool on the same database. */
  secondProcess(options?: Partial<DatabaseOptions>): CommandDependencies
  audit(organizationId?: string): Promise<readonly AuditEventRow[]>
  /** The actions recorded for one thing, in order. */
  actionsOn(resourceId: string, organizationId?: string): Promise<readonly string[]>
  stop(): Promise<void>
}

export interface CallOptions {
  readonly key?: string | undefined
  readonly body?: unknown
  readonly route?: string
  readonly pathParams?: Readonly<Record<string, string>>
}

export const commandWorld = async (
  options: { readonly settings?: Partial<CommandSettings>; readonly store?: ResourceStore } = {},
): Promise<CommandWorld> => {
  const plane = await controlPlaneDatabase({ maxConnections: 20 })
  const woken: string[] = []
  const opened: Database[] = [plane.database]
  const depsOn = (database: Database): CommandDependencies => ({
    database,
    store: options.store ?? NO_STORE,
    settings: { ...TEST_SETTINGS, ...options.settings },
    sealingKey,
    contentKey,
    wakeDispatcher: row => woken.push(row),
    log: silentLog,
  })
  const sealingKey = randomBytes(32)
  const contentKey = randomBytes(32)
  const deps = depsOn(plane.database)

  const user = async (role?: Role, isOperator = false): Promise<Principal> => {
    const made = await makeUser(plane.database, {
      email: `${randomUUID()}@example.com`,
      name: 'Ada',
      isOperator,
      tokenName: 'test',
    })
    if (role !== undefined) await plane.database.transaction(sql => putMembership(sql, 'acme', made.userId, role))
    return {
      kind: 'personal',
      subject: `user:${made.userId}`,
      userId: made.userId,
      credentialId: made.tokenId,
      isOperator,
      role,
      scopes: undefined,
    }
  }
  const call = (principal: Principal, { key, body, route, pathParams }: CallOptions = {}): Call => ({
    principal,
    requestId: randomUUID(),
    clientIp: '192.0.2.7',
    clientKey: '192.0.2.7',
    userAgent: undefined,
    method: 'POST',
    route: route ?? '/v1/test',
    pathParams: pathParams ?? {},
    idempotencyKey: key ?? randomUUID(),
    contentHash: createHash('sha256')
      .update(JSON.stringify(body ?? null))
      .digest(),
  })

  const founder = await user(undefined, true)
  await putOrganization(deps, call(founder), { organizationId: 'acme', name: 'Acme' })
  const owner: Principal = { ...founder, role: 'owner' }
  await putProject(deps, call(owner), {
    organizationId: 'acme',
    projectId: 'shop',
    body: { region: 'eu-central', postgres_major: 17 },
  })

  return {
    plane,
    deps,
    woken,
    owner,
    user,
    call,
    refreshed: async (principal, organizationId = 'acme') => ({
      ...principal,
      role: (await findMember(plane.database, organizationId, principal.userId!))?.role,
    }),
    secondProcess: more => {
      const database = plane.open({ maxConnections: 20, ...more })
      opened.push(database)
      return depsOn(database)
    },
    audit: async (organizationId = 'acme') => (await listAuditEvents(plane.database, organizationId, 0, 100_000)).items,
    actionsOn: async (resourceId, organizationId = 'acme') =>
      (
        await plane.database.rows<{ action: string }>(
          'select action from audit_events where organization_id = $1 and resource_id = $2 order by id',
          [organizationId, resourceId],
        )
      ).map(({ action }) => action),
    stop: async () => {
      await Promise.all(opened.map(database => database.stop()))
    },
  }
}

export const pathOf = (environmentId: string): EnvironmentPath => ({
  organizationId: 'acme',
  projectId: 'shop',
  environmentId,
})

/** The body of a create: an empty preview. */
export const createBody = (
  environmentId: string,
  more: Partial<CreateEnvironmentBody> = {},
): CreateEnvironmentBody => ({
  organization_id: 'acme',
  project_id: 'shop',
  environment_id: environmentId,
  kind: 'preview',
  ...more,
})

/** The body of a reply, read as a client reads it. */
export const bodyOf = <Body>(reply: Reply<number, Body>): Body =>
  (Buffer.isBuffer(reply.body) ? JSON.parse(reply.body.toString()) : reply.body) as Body

/** Puts an environment's row into a phase, as the projector does when it saw it. */
export const setPhase = async (
  world: CommandWorld,
  id: string,
  phase: Phase,
  more: { readonly suspendedWanted?: boolean } = {},
): Promise<void> => {
  const spec = more.suspendedWanted === undefined ? null : JSON.stringify({ suspended: more.suspendedWanted })
  await world.plane.database.rows(
    `update environments set phase = $2, uid = coalesce(uid, gen_random_uuid()::text), observed_spec = coalesce($3::jsonb, observed_spec)
     where id = $1`,
    [id, phase, spec],
  )
}
