/** The Secret of the authority that every environment trusts, deleted by hand: with an operator that knows it, and with one that does not. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Secret } from '@kubernetes/client-node'
import { conditionOf } from '../../crds/conditions.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const SECRET: ObjectType<V1Secret> = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' }
const NAME = 'svc-ca'

describe('an authority whose Secret was deleted', function () {
  this.timeout(180_000)
  let faked: FakedCluster
  let operator: OperatorProcess
  let environment: FakedEnvironment
  let kubectl: ReturnType<typeof kubectlOn>['must']
  let intact: V1Secret

  before(async function () {
    faked = await fakedCluster(this)
    const { kubeconfig } = faked.cluster
    kubectl = kubectlOn(kubeconfig).must
    operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity: 'authority' })
    await operator.start()
    environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    await until('created', () => environment.isDone(), Boolean)
    intact = (await secret())!
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    if (operator === undefined) return
    await environment.ask('delete')
    await until('deleted', () => environment.isDone(), Boolean)
    await operator.stop()
    await faked.assertSound()
  })

  const until = async <T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
    for (const end = Date.now() + 75_000; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      await sleep(50)
      assert.ok(Date.now() < end, `${what}: it is ${JSON.stringify(seen)}\n${operator.output.slice(-3000)}`)
    }
  }
  const secret = (): Promise<V1Secret | undefined> =>
    faked.cluster.objects.get(SECRET, { namespace: faked.namespace, name: NAME })
  const deleteSecret = (): Promise<string> => kubectl(['-n', faked.namespace, 'delete', 'secret', NAME])
  const podUid = async (): Promise<string | undefined> =>
    (await faked.cluster.objects.list(POD, { namespace: environment.key.namespace })).items[0]?.metadata?.uid
  /** Through a session of the superuser and a sign-in: nothing of it works with an authority that the server does not trust. */
  const suspendAndResume = async (): Promise<void> => {
    await environment.ask('suspend', { suspended: true })
    await until('suspended', () => environment.isDone(), Boolean)
    await environment.ask('resume', { suspended: false })
    await until('resumed', () => environment.isDone(), Boolean)
  }
  const refused = (): Promise<string> =>
    until(
      'the operator says why it refuses',
      async () => {
        const answer = await fetch(operator.metricsUrl.replace('/metrics', '/readyz')).catch(() => undefined)
        return answer?.ok === false ? await answer.text() : ''
      },
      said => said.includes(ANNOTATIONS.newAuthority),
    )

  it('is written back by an operator that knows it, the same to the byte', async () => {
    const pod = await podUid()
    await deleteSecret()
    const back = await until('it is back', secret, seen => seen !== undefined)
    assert.deepEqual(back?.data, intact.data)
    await kubectl(['-n', faked.namespace, 'patch', 'secret', NAME, '--type', 'merge', '-p', '{"data":{"ca.key":null}}'])
    await until('it is whole', secret, seen => seen?.data?.['ca.key'] === intact.data?.['ca.key'])
    assert.equal(await podUid(), pod)
    await suspendAndResume()
  })

  it('is not replaced by an operator that starts without it, until the backup is there', async () => {
    const pod = await podUid()
    await operator.stop()
    await deleteSecret()
    operator.launch()
    assert.match(await refused(), /Restore it from the backup/)
    const newcomer = await FakedEnvironment.prepare(faked)
    await newcomer.ask('create')
    const told = await until(
      'a new environment says why it waits',
      async () => conditionOf((await newcomer.get())?.status?.conditions, 'Reconciling'),
      seen => seen?.reason === 'AuthorityMissing',
    )
    assert.match(told?.message ?? '', /backup/)
    const { conditions } = (await environment.get())!.status!
    assert.equal(conditionOf(conditions, 'Ready')?.status, 'True', 'what runs is called broken')
    assert.equal(await secret(), undefined, 'an authority was made')
    const { data, type } = intact
    const backup = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: faked.namespace, name: NAME },
      type,
      data,
    }
    await kubectl(['apply', '-f', '-'], JSON.stringify(backup))
    await until('the new one is made', () => newcomer.isDone(), Boolean)
    assert.equal(await podUid(), pod)
    await suspendAndResume()
    await newcomer.ask('delete')
    await until('the new one goes', () => newcomer.isDone(), Boolean)
  })

  it('is replaced where an admin accepts that, with a restart of every server and nothing to do by hand', async () => {
    const pod = await podUid()
    await operator.stop()
    await deleteSecret()
    operator.launch()
    await refused()
    await kubectl(['-n', faked.namespace, 'create', 'secret', 'generic', NAME])
    await kubectl(['-n', faked.namespace, 'annotate', 'secret', NAME, `${ANNOTATIONS.newAuthority}=accepted`])
    const fresh = await until('it is made', secret, seen => seen?.data?.['ca.key'] !== undefined)
    assert.notEqual(fresh?.data?.['ca.crt'], intact.data?.['ca.crt'])
    assert.equal(fresh?.metadata?.annotations?.[ANNOTATIONS.newAuthority], undefined)
    await until('the server is restarted', podUid, uid => uid !== undefined && uid !== pod)
    const caCertificate = atob(fresh?.data?.['ca.crt'] ?? '')
    await until(
      'it is ready, and clients are told whom to trust',
      async () => (await environment.get())?.status,
      seen =>
        conditionOf(seen?.conditions, 'Ready')?.status === 'True' && seen?.endpoint?.caCertificate === caCertificate,
    )
    const restarted = await podUid()
    await suspendAndResume()
    assert.notEqual(restarted, pod)
  })
})
