/** One scenario's organization and project, and the sentences that scenarios are made of. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../crds/environment-type.ts'
import { projectNamespace } from '../crds/metadata.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import type { SqlSession } from '../testkit/open-sql.ts'
import type {
  Answer,
  AuditEventBody,
  CallOptions,
  ConnectionBody,
  EnvironmentBody,
  OperationBody,
} from './api-client.ts'
import { freshId, type World } from './world.ts'

export class Tenant {
  readonly world: World
  readonly organizationId: string
  readonly projectId: string

  private constructor(world: World, organizationId: string, projectId: string) {
    this.world = world
    this.organizationId = organizationId
    this.projectId = projectId
  }

  /** A new organization with one project. */
  static async create(world: World): Promise<Tenant> {
    const tenant = new Tenant(world, freshId('org'), 'app')
    await world.api.expect(200, 'PUT', `/v1/organizations/${tenant.organizationId}`, { body: { name: 'Scenario' } })
    await world.api.expect(200, 'PUT', `/v1/organizations/${tenant.organizationId}/projects/app`, {
      body: { region: 'local', postgres_major: 17 },
    })
    return tenant
  }

  /** The same tenant after its world was started again. */
  in(world: World): Tenant {
    return new Tenant(world, this.organizationId, this.projectId)
  }

  /** The path of an environment, or of something below it. */
  path(environmentId: string, below = ''): string {
    return `/v1/organizations/${this.organizationId}/projects/${this.projectId}/environments/${environmentId}${below}`
  }

  /** The key of an environment's resource. */
  key(environmentId: string): ResourceKey {
    return {
      namespace: projectNamespace(this.organizationId, this.projectId),
      name: environmentName({ organizationId: this.organizationId, projectId: this.projectId, environmentId }),
    }
  }

  /** Asks for an environment; any answer. */
  requestEnvironment(
    environmentId: string,
    fields: Readonly<Record<string, unknown>> = {},
    options: CallOptions = {},
  ): Promise<Answer<OperationBody>> {
    const body = {
      organization_id: this.organizationId,
      project_id: this.projectId,
      environment_id: environmentId,
      kind: 'staging',
      ...fields,
    }
    return this.world.api.call('POST', '/v1/environments', { body, ...options })
  }

  /** A ready environment. */
  async createEnvironment(environmentId: string, fields: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const answer = await this.requestEnvironment(environmentId, fields)
    assert.equal(answer.status, 202, answer.text)
    await this.succeeded(answer.body.id)
  }

  /** One of the verbs that answer 202, to its successful end. */
  async run(verb: 'suspend' | 'resume' | 'delete', environmentId: string): Promise<OperationBody> {
    const operation =
      verb === 'delete'
        ? await this.world.api.expect<OperationBody>(202, 'DELETE', this.path(environmentId))
        : await this.world.api.expect<OperationBody>(202, 'POST', this.path(environmentId, `/${verb}`))
    return this.succeeded(operation.id)
  }

  /** Waits for an operation that must succeed. */
  async succeeded(operationId: string): Promise<OperationBody> {
    const operation = await this.ended(operationId)
    assert.equal(operation.state, 'succeeded', `${operation.kind} failed: ${operation.error}`)
    return operation
  }

  /** Waits for an operation to end either way. */
  ended(operationId: string): Promise<OperationBody> {
    return this.world.api.operation(this.organizationId, operationId)
  }

  environment(environmentId: string): Promise<EnvironmentBody> {
    return this.world.api.expect(200, 'GET', this.path(environmentId))
  }

  /** What tells the environment from its predecessors of the same id. */
  async uid(environmentId: string): Promise<string> {
    const resource = await this.world.store.get(environmentType, this.key(environmentId))
    assert.ok(resource, `No resource of ${environmentId}`)
    return resource.metadata.uid
  }

  /** Polls until the environment is in one of these phases. A kubelet waits longer and longer between failed starts. */
  async inPhase(environmentId: string, ...phases: string[]): Promise<EnvironmentBody> {
    const until = Date.now() + 180_000
    for (;;) {
      const environment = await this.environment(environmentId)
      if (phases.includes(environment.phase)) return environment
      assert.ok(Date.now() < until, `${environmentId} is ${environment.phase}, never became ${phases.join(' or ')}`)
      await sleep(50)
    }
  }

  /** How a client connects, as the API tells it. */
  connection(environmentId: string): Promise<ConnectionBody> {
    return this.world.api.expect(200, 'GET', this.path(environmentId, '/connection'))
  }

  /** A session in the environment's database, over the connection that a client gets. */
  async open(environmentId: string): Promise<SqlSession> {
    const { connection_uri, ca_certificate } = await this.connection(environmentId)
    return this.world.openSql(connection_uri, ca_certificate)
  }

  /** Runs something in the environment's database. */
  async sql<T>(environmentId: string, use: (session: SqlSession) => Promise<T>): Promise<T> {
    const session = await this.open(environmentId)
    try {
      return await use(session)
    } finally {
      await session.close()
    }
  }

  /** The audit log from its beginning to its end, in pages of the given size. */
  async auditEvents(limit = 7): Promise<AuditEventBody[]> {
    const events: AuditEventBody[] = []
    let after: number | null = 0
    while (after !== null) {
      const page: { events: AuditEventBody[]; next_cursor: number | null } = await this.world.api.expect(
        200,
        'GET',
        `/v1/organizations/${this.organizationId}/audit-events?after=${after}&limit=${limit}`,
      )
      events.push(...page.events)
      after = page.next_cursor
    }
    return events
  }
}
