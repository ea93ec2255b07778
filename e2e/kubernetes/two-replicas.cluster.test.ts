/** Two replicas of each program at once, one of each killed midway: whatever was asked for happens, and happens once. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Lease } from '@kubernetes/client-node'
import pg from 'pg'
import { environmentType } from '../../crds/environment-type.ts'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type AuditLine, AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { namespaces } from '../../testkit/kubernetes/cluster.ts'
import type { Answer, ApiClient, AuditEventBody, OperationBody } from '../api-client.ts'
import type { Tenant } from '../tenant.ts'
import { type FakedControlPlane, startFakedControlPlane } from './faked-control-plane.ts'

const LEASE: ObjectType<V1Lease> = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' }
const ENVIRONMENTS = ['aa', 'bb', 'cc', 'dd', 'ee']
/** Which of them go at the end. */
const GOING = new Set(['aa', 'cc', 'ee'])

interface Asked {
  readonly verb: string
  readonly method: 'POST' | 'DELETE'
  readonly path: (tenant: Tenant, id: string) => string
}
const step = (verb: string, below = ''): Asked => ({
  verb,
  method: 'POST',
  path: (tenant, id) => tenant.path(id, below),
})
const LIFE: readonly Asked[] = [
  { ...step('create_environment'), path: () => '/v1/environments' },
  step('suspend_environment', '/suspend'),
  step('resume_environment', '/resume'),
  step('rotate_credentials', '/rotate-credentials'),
]
const GOODBYE: Asked = { ...step('delete_environment'), method: 'DELETE' }
const lifeOf = (id: string): readonly Asked[] => (GOING.has(id) ? [...LIFE, GOODBYE] : LIFE)

describe('two replicas of each program', function () {
  this.timeout(400_000)
  let plane: FakedControlPlane
  let tenant: Tenant
  let log: AuditLog | undefined

  before(async function () {
    const path = auditLogOf('api')
    if (path !== undefined) log = new AuditLog(path)
    plane = await startFakedControlPlane(this, 2)
    tenant = await plane.tenant()
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was started
  after(() => plane?.stop())

  /** As a client does that has two addresses: where nobody answers it asks the other one, with the same key. */
  const call = async (first: number, asked: Asked, id: string): Promise<Answer<OperationBody>> => {
    const key = randomUUID()
    const body =
      asked.verb === 'create_environment'
        ? {
            ...{ organization_id: tenant.organizationId, project_id: tenant.projectId, environment_id: id },
            ...{ kind: 'staging', deletion_policy: 'delete' },
          }
        : undefined
    for (let turn = first, until = Date.now() + 60_000; ; turn++) {
      const client: ApiClient = plane.client(plane.apiServers[turn % 2]!)
      try {
        const options = { key, ...(body === undefined ? {} : { body }) }
        const answer = await client.call<OperationBody>(asked.method, asked.path(tenant, id), options)
        if (answer.status < 500) return answer
      } catch {
        // Killed before it answered, or not there: what it did is found by the key.
      }
      assert.ok(Date.now() < until, `Nobody answers\n${plane.outputs()}`)
      await sleep(100)
    }
  }
  const ended = async (id: string): Promise<OperationBody> => {
    for (const until = Date.now() + 90_000; ; ) {
      for (const server of plane.apiServers) {
        const answer = await plane
          .client(server)
          .call<OperationBody>('GET', `/v1/operations/${id}`, {
            headers: { 'x-service-organization-id': tenant.organizationId },
          })
          .catch(() => undefined)
        if (answer?.status === 200 && ['succeeded', 'failed'].includes(answer.body.state)) return answer.body
      }
      assert.ok(Date.now() < until, `Operation ${id} has no end\n${plane.outputs()}`)
      await sleep(100)
    }
  }
  const leader = async (): Promise<string> => {
    const lease = await plane.faked.cluster.objects.get(LEASE, {
      namespace: plane.faked.namespace,
      name: 'svc-operator',
    })
    return lease?.spec?.holderIdentity ?? ''
  }
  const rows = async <T extends object>(sql: string): Promise<T[]> => {
    const client = new pg.Client({ connectionString: plane.database.url('postgres') })
    await client.connect()
    try {
      return (await client.query<T>(sql, [tenant.organizationId])).rows
    } finally {
      await client.end()
    }
  }

  it('do what was asked of both at once, though a leading operator and an API server are killed: once each', async () => {
    let done = 0
    const operations = new Map<string, string[]>()
    const lives = ENVIRONMENTS.map(async (id, index) => {
      const ids: string[] = []
      operations.set(id, ids)
      for (const [turn, asked] of lifeOf(id).entries()) {
        const answer = await call(index + turn, asked, id)
        assert.equal(answer.status, 202, `${asked.verb} of ${id}: ${answer.text}`)
        ids.push(answer.body.id)
        const { state, error } = await ended(answer.body.id)
        assert.equal(state, 'succeeded', `${asked.verb} of ${id}: ${error}`)
        done++
      }
    })
    const midway = (async () => {
      while (done < ENVIRONMENTS.length) await sleep(20)
      const [first, second] = plane.operators
      const leading = (await leader()) === 'replica-1' ? first! : second!
      await Promise.all([leading.stop('SIGKILL'), plane.apiServers[0]!.stop('SIGKILL')])
      // As a Deployment does it, after a while.
      await sleep(1000)
      leading.launch()
      await plane.apiServers[0]!.start()
    })()
    await Promise.all([...lives, midway])
    await assertOnce(operations)
  })

  /** Compares what was asked for with what every witness says was done. */
  const assertOnce = async (operations: ReadonlyMap<string, readonly string[]>): Promise<void> => {
    const found = await rows<{ id: string; environment_id: string; kind: string; state: string }>(
      'select id, environment_id, kind, state from operations where organization_id = $1 order by environment_id, seq',
    )
    const expected = ENVIRONMENTS.flatMap(id =>
      lifeOf(id).map(({ verb }, n) => ({
        id: operations.get(id)![n],
        environment_id: id,
        kind: verb,
        state: 'succeeded',
      })),
    )
    assert.deepEqual(found, expected)
    const events = await rows<Pick<AuditEventBody, 'action' | 'resource_id'>>(
      `select action, resource_id from audit_events where organization_id = $1 and resource_kind = 'environment' order by id`,
    )
    const { namespace } = tenant.key('any')
    for (const id of ENVIRONMENTS) {
      const actions = events.filter(({ resource_id }) => resource_id.endsWith(id)).map(({ action }) => action)
      assert.deepEqual(
        actions,
        lifeOf(id).map(({ verb }) => verb),
        id,
      )
      const resource = await plane.faked.store.get(environmentType, tenant.key(id))
      if (GOING.has(id)) assert.equal(resource, undefined)
      else {
        // Each request moved it once, and the last one is what is reported.
        assert.equal(resource?.metadata.generation, LIFE.length, id)
        assert.equal(resource.spec.request?.id, operations.get(id)!.at(-1))
        assert.equal(resource.status?.phase, 'ready')
      }
    }
    assert.ok(await plane.faked.cluster.objects.get(namespaces, { namespace: '', name: namespace }))
    if (log === undefined) console.log('      not judged: the cluster’s audit log (SERVICE_TEST_API_AUDIT_LOG)')
    else assertMadeOnce(log.lines().filter(line => line.namespace === namespace))
  }

  const assertMadeOnce = (lines: readonly AuditLine[]): void => {
    const count = (resource: string, of: (line: AuditLine) => boolean): number =>
      lines.filter(line => line.resource === resource && of(line)).length
    const madeHere = ({ code }: AuditLine): boolean => code === 201
    const deleted = ({ verb, code }: AuditLine): boolean => verb === 'delete' && code < 300
    const n = ENVIRONMENTS.length
    assert.equal(count('environments', madeHere), n, 'Environments made')
    assert.equal(count('persistentvolumeclaims', madeHere), n, 'claims made')
    assert.equal(count('statefulsets', madeHere), n, 'StatefulSets made')
    assert.equal(count('services', madeHere), n, 'Services made')
    // The tls, app and ops Secret of each; a rotation changes two of them.
    assert.equal(count('secrets', madeHere), 3 * n, 'Secrets made')
    // One server after the creation, one after the resumption.
    assert.equal(count('pods', madeHere), 2 * n, 'pods made')
    assert.equal(count('environments', deleted), GOING.size, 'Environments asked to go')
    assert.equal(count('persistentvolumeclaims', deleted), GOING.size, 'claims deleted')
  }
})
