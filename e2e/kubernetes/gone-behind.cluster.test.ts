/** Environments that go behind the API's back, whoever is away meanwhile: they end, nothing is made for them any more, and every operation reaches its end. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { namespaces } from '../../testkit/kubernetes/cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import type { OperationBody } from '../api-client.ts'
import type { Tenant } from '../tenant.ts'
import { askedToGoAt, createdSince } from './created-since.ts'
import { type FakedControlPlane, startFakedControlPlane } from './faked-control-plane.ts'
import type { OperatorProcess } from './operator-process.ts'

const DEADLINE_MS = 120_000

describe('environments that go behind the back of the API', function () {
  this.timeout(400_000)
  let plane: FakedControlPlane
  let operator: OperatorProcess
  let log: AuditLog
  let kubectl: ReturnType<typeof kubectlOn>['must']

  before(async function () {
    const path = auditLogOf('api')
    if (path === undefined)
      return skipBecause(this, 'what was made, and when, stands in an audit log: set SERVICE_TEST_API_AUDIT_LOG')
    log = new AuditLog(path)
    plane = await startFakedControlPlane(this, 1)
    operator = plane.operators[0]!
    kubectl = kubectlOn(plane.faked.cluster.kubeconfig).must
  })
  afterEach(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    if (operator !== undefined && !operator.running) await operator.start()
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was started
  after(() => plane?.stop())

  const until = async <T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
    for (const end = Date.now() + DEADLINE_MS; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      assert.ok(Date.now() < end, `${what}: it is ${JSON.stringify(seen)}\n${plane.outputs()}`)
      await sleep(50)
    }
  }
  /** A tenant with a ready environment of this id. */
  const withEnvironment = async (id: string): Promise<Tenant> => {
    const tenant = await plane.tenant()
    await tenant.createEnvironment(id, { deletion_policy: 'delete' })
    return tenant
  }
  const suspend = (tenant: Tenant, id: string): Promise<OperationBody> =>
    tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(id, '/suspend'))
  const gone = (tenant: Tenant, id: string): Promise<unknown> =>
    until(
      `${id} goes`,
      () => plane.faked.store.get(environmentType, tenant.key(id)),
      seen => seen === undefined,
    )
  const namespaceGone = (name: string): Promise<unknown> =>
    until(
      `${name} ends`,
      () => plane.faked.cluster.objects.get(namespaces, { namespace: '', name }),
      seen => seen === undefined,
    )
  /** The log is written after the answer: it is read once it tells of the deletion. */
  const assertNothingMade = async (tenant: Tenant, id: string): Promise<void> => {
    const { namespace, name } = tenant.key(id)
    const at = await until(
      'the log tells of the deletion',
      async () => askedToGoAt(log.lines(), { resource: 'environments', namespace, name }),
      moment => moment !== undefined,
    )
    assert.deepEqual(createdSince(log.lines(), namespace, at ?? 0), [])
  }
  const events = async (tenant: Tenant, id: string): Promise<string[]> =>
    (await tenant.auditEvents())
      .filter(({ resource_id }) => resource_id.endsWith(id))
      .map(({ action, actor }) => `${action} by ${actor.split(':')[0]}`)

  it('in a namespace that is deleted while the operator is away: both end when it is back, and so does an open operation', async () => {
    const tenant = await withEnvironment('swept')
    const { namespace } = tenant.key('swept')
    await operator.stop()
    const asked = await suspend(tenant, 'swept')
    await until(
      'the request arrived',
      () => plane.faked.store.get(environmentType, tenant.key('swept')),
      seen => seen?.spec.request?.id === asked.id,
    )
    await kubectl(['delete', 'namespace', namespace, '--wait=false'])
    await until(
      'it is asked to go',
      () => plane.faked.store.get(environmentType, tenant.key('swept')),
      seen => seen?.metadata.deletionTimestamp !== undefined,
    )
    // The operation does not wait for an operator: what was asked for cannot come about any more.
    const { state, error } = await tenant.ended(asked.id)
    assert.equal(state, 'failed')
    assert.ok((error ?? '').length > 0)
    assert.ok(await plane.faked.store.get(environmentType, tenant.key('swept')))
    await operator.start()
    await gone(tenant, 'swept')
    await namespaceGone(namespace)
    await tenant.inPhase('swept', 'deleted')
    await assertNothingMade(tenant, 'swept')
    assert.equal((await events(tenant, 'swept')).filter(event => event.startsWith('delete_environment')).length, 1)
  })

  it('deleted in the foreground: its children first, then itself, and nothing is made anew meanwhile', async () => {
    const tenant = await withEnvironment('front')
    const { namespace, name } = tenant.key('front')
    await kubectl(['-n', namespace, 'delete', 'senv', name, '--cascade=foreground', '--timeout=120s'])
    await gone(tenant, 'front')
    await tenant.inPhase('front', 'deleted')
    await assertNothingMade(tenant, 'front')
    assert.deepEqual(await events(tenant, 'front'), ['create_environment by user', 'delete_environment by kubernetes'])
  })

  it('deleted while suspended: no server is started for it', async () => {
    const tenant = await withEnvironment('asleep')
    const { namespace, name } = tenant.key('asleep')
    await tenant.run('suspend', 'asleep')
    await kubectl(['-n', namespace, 'delete', 'senv', name, '--timeout=120s'])
    await tenant.inPhase('asleep', 'deleted')
    await assertNothingMade(tenant, 'asleep')
    // The id is free, and whoever asks for it gets one of his own.
    await tenant.createEnvironment('asleep', { deletion_policy: 'delete' })
    await tenant.run('delete', 'asleep')
  })
})
