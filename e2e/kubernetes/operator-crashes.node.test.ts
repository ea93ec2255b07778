/**
 * The operator is killed after every third change that it makes, where kubelet and the cluster's own controllers are at work: the
 * end is that of an undisturbed run. It runs on this machine, behind a proxy; no installed one may be there.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { KubeConfig, type V1Deployment, type V1PersistentVolume } from '@kubernetes/client-node'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { instanceName, LABELS, shortUid } from '../../crds/metadata.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { FULL } from '../../testkit/full.ts'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import type { Exchange, FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { CountedChanges } from './counted-changes.ts'
import { CRASH_ROWS, type CrashRow } from './crash-rows.ts'
import { type DatabaseDoors, databaseDoors } from './database-doors.ts'
import { everythingIn, normalized } from './everything-in.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { dropVolumes } from './left-behind.ts'
import type { OperatorProcess } from './operator-process.ts'
import { proxiedOperator } from './proxied-operator.ts'
import { readAppSecret, signInBySecret } from './sign-in-by-secret.ts'

const DEPLOYMENT: ObjectType<V1Deployment> = { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' }
const VOLUME: ObjectType<V1PersistentVolume> = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  clusterScoped: true,
}

const ROWS: typeof CRASH_ROWS = {
  ...CRASH_ROWS,
  delete: { ...CRASH_ROWS.delete, change: { deletionPolicy: 'Delete' } },
}

const EVERY = FULL ? 1 : 3
/** What an operator still writes when an operation is done comes within this time. */
const QUIET_MS = 500
/** Controllers and kubelet bring their statuses up to date in their own time. */
const SETTLES_MS = 30_000

describe('on a node, the operator dies after changes that it makes', function () {
  this.timeout(600_000)
  let place: { readonly cluster: TestCluster; readonly store: ResourceStore; readonly namespace: string }
  let proxy: FaultProxy
  let operator: OperatorProcess
  let started = false
  let doors: DatabaseDoors
  const keeping: string[] = []

  before(async () => {
    const cluster = await nodeCluster()
    await cluster.installKinds()
    const installed = (await cluster.objects.list(DEPLOYMENT)).items.filter(
      ({ metadata }) => metadata?.labels?.['app.kubernetes.io/component'] === 'operator',
    )
    assert.deepEqual(
      installed.map(({ metadata }) => metadata?.name),
      [],
      'an installed operator would do what the killed one should',
    )
    const namespace = await cluster.namespace('crashes-system')
    place = { cluster, store: new KubernetesResourceStore(cluster.api, 'svc-apiserver'), namespace }
    ;({ proxy, operator } = await proxiedOperator(place, 'the-only-one'))
    started = true
    const config = new KubeConfig()
    config.loadFromFile(cluster.kubeconfig)
    doors = databaseDoors({ config, objects: cluster.objects })
    await operator.start()
  })
  after(async () => {
    if (!started) return
    await doors.close()
    await operator.stop()
    await proxy.stop()
    // What was kept goes with its namespace, at the end of the run; its operator would have kept it.
    for (const namespace of keeping) await dropVolumes(place.cluster.objects, namespace)
  })

  const tail = (): string => operator.output.split('\n').slice(-15).join('\n')
  const back = (): void => {
    if (!operator.running) operator.launch()
  }
  const done = (environment: FakedEnvironment): Promise<void> => environment.done({ meanwhile: back, tell: tail })
  const isQuiet = async (count: () => number): Promise<void> => {
    for (let seen = -1; seen !== count() || !operator.running; ) {
      seen = count()
      back()
      await sleep(QUIET_MS)
    }
  }

  const changesSoFar = (): number => proxy.exchanges.filter(({ mutation }) => mutation !== undefined).length

  /** Brings an environment to where a row's verb is asked for. */
  const prepare = async ({ before }: CrashRow): Promise<FakedEnvironment> => {
    const environment = await FakedEnvironment.prepare(place)
    for (const [earlier, change] of before) {
      await environment.ask(earlier, change)
      await done(environment)
    }
    return environment
  }

  /** All that is there, as it would be in every run; of a pod's status only what says that it serves. */
  const found = async (environment: FakedEnvironment, uid: string) => {
    const { namespace, name } = environment.key
    const path = { organizationId: 'org', projectId: environment.projectId, environmentId: 'main' }
    const words = [
      [namespace, 'NAMESPACE'],
      [name, 'NAME'],
      [instanceName(path), 'INSTANCE'],
      [environment.projectId, 'PROJECT'],
      [uid, 'UID'],
      [shortUid(uid), 'SHORT-UID'],
    ] as const
    const objects = new Map<string, KubernetesObject>()
    for (const [title, object] of await everythingIn(place.cluster.api, namespace))
      objects.set(title, title.startsWith('Pod ') ? servingPod(object) : object)
    const records = await place.store.list(deletionRecordType, { namespace: place.namespace })
    const volumes = await place.cluster.objects.list(VOLUME)
    return {
      objects: normalized(objects, words) as Readonly<Record<string, unknown>>,
      records: records.items
        .filter(record => record.spec.uid === uid)
        .map(({ spec: { cause, retained, retainedAt = '' } }) => ({
          ...{ cause, retained },
          retainedAt: words.reduce((text, [value, word]) => text.replaceAll(value, word), retainedAt),
        })),
      volumes: volumes.items
        .filter(({ spec }) => spec?.claimRef?.namespace === namespace)
        .map(({ spec, status, metadata }) => [
          ...[spec?.persistentVolumeReclaimPolicy, status?.phase],
          metadata?.labels?.[LABELS.retained],
        ]),
    }
  }

  interface Run {
    readonly environment: FakedEnvironment
    readonly uid: string
    readonly changes: readonly string[]
    readonly died: boolean
  }
  /** Asks, waits for the end, and for the silence after it; the operator dies after this many changes. */
  const run = async ({ verb, change }: CrashRow, environment: FakedEnvironment, dieAfter?: number): Promise<Run> => {
    let died = false
    const act = (): void => {
      died = true
      operator.signal('SIGKILL')
    }
    const places = [environment.key.namespace, place.namespace]
    const counted = new CountedChanges(proxy, places, dieAfter === undefined ? undefined : { count: dieAfter, act })
    const before = (await environment.get())?.metadata.uid
    await environment.ask(verb, change)
    const uid = before ?? (await environment.get())!.metadata.uid
    await done(environment)
    await isQuiet(() => counted.seen.length)
    counted.end()
    // What is compared knows nothing of values: that the kept password is the server's is proven by its use.
    if (verb !== 'delete' && verb !== 'suspend') await signInBySecret(environment, uid, doors.openSql)
    return { environment, uid, changes: counted.seen, died }
  }
  const sameAs = async (expected: unknown, { environment, uid }: Run, when: string): Promise<void> => {
    for (const until = Date.now() + SETTLES_MS; ; ) {
      const now = await found(environment, uid)
      try {
        assert.deepEqual(now, expected, when)
        return
      } catch (error) {
        if (Date.now() > until) throw error
      }
      await sleep(250)
    }
  }

  for (const [title, row] of Object.entries(ROWS))
    it(`${title}: dies after ${EVERY === 1 ? 'each change' : `every ${EVERY}rd change`}`, async () => {
      const first = await prepare(row)
      await isQuiet(changesSoFar)
      const undisturbed = await run(row, first)
      const { changes } = undisturbed
      assert.ok(changes.length > 0, 'The operator changed nothing')
      const counts = changes.flatMap((_, index) => (index % EVERY === 0 ? [index + 1] : []))
      const environments = await Promise.all(counts.map(() => prepare(row)))
      await isQuiet(changesSoFar)
      let deaths = 0
      const runs: Run[] = []
      for (const [index, environment] of environments.entries()) {
        const disturbed = await run(row, environment, counts[index])
        if (disturbed.died) deaths++
        runs.push(disturbed)
      }
      console.log(`      ${deaths} deaths, after changes ${counts.join(', ')} of ${changes.length}`)
      const expected = await found(undisturbed.environment, undisturbed.uid)
      if (row === ROWS['delete, and retain']) {
        keeping.push(...[undisturbed, ...runs].map(({ environment }) => environment.key.namespace))
        const claim = Object.keys(expected.objects).find(name => name.startsWith('PersistentVolumeClaim '))
        assert.ok(claim !== undefined, 'The claim is not there')
        assert.deepEqual(expected.volumes, [['Retain', 'Bound', 'true']])
        const retainedAt = `persistentvolumeclaim/NAMESPACE/${claim.split(' ')[1]}`
        assert.deepEqual(expected.records, [{ cause: 'request:op-2', retained: true, retainedAt }])
      }
      for (const [index, disturbed] of runs.entries())
        await sameAs(expected, disturbed, `after change ${counts[index]}, ${changes[counts[index]! - 1]}`)
      // Two status writes of an undisturbed run may be one in another: the last number may lie beyond the end.
      assert.ok(deaths >= Math.max(1, counts.length - 1), `${deaths} deaths of ${counts.length}`)
      await Promise.all([undisturbed, ...runs].map(({ environment }) => remove(environment)))
    })

  it('rotate: the server takes a new password at the very moment that the Secret says it', async () => {
    const environment = await FakedEnvironment.prepare(place)
    await environment.ask('create')
    await done(environment)
    const { uid } = (await environment.get())!.metadata
    const { app } = credentialSecrets.names({ ...environment.key, uid })
    const isAppSecret = ({ mutation, path }: Exchange): boolean =>
      mutation !== undefined && path.split('?')[0]!.endsWith(`/secrets/${app}`)
    const passwords = new Set<string>()
    const answers: string[] = []
    // The write is done and the operator does not know it yet: it waits until somebody has tried what was written.
    const rule = proxy.onAnswer(isAppSecret, async () => {
      const { uri } = await readAppSecret(place.cluster.objects, environment.key, uid)
      passwords.add(new URL(uri).password)
      const answer = await signInBySecret(environment, uid, doors.openSql).then(() => 'let in', String)
      answers.push(answer)
      return 'pass'
    })
    for (const rotation of ['first', 'second', 'third']) {
      await environment.ask('rotate', { credentialsRotation: rotation })
      await done(environment)
    }
    rule.remove()
    assert.equal(passwords.size, 3, 'Not three new passwords were written')
    for (const answer of answers) assert.equal(answer, 'let in')
    await remove(environment)
  })

  /** The node is small; its pods go before others come, and their end is no part of what is counted then. */
  const remove = async (environment: FakedEnvironment): Promise<void> => {
    if ((await environment.get()) === undefined) return
    await environment.ask('delete', { deletionPolicy: 'Delete' })
    await done(environment)
  }
})

const servingPod = (object: KubernetesObject): KubernetesObject => {
  const { status, ...pod } = object as KubernetesObject & {
    readonly status?: { readonly phase?: string; readonly containerStatuses?: readonly { readonly ready: boolean }[] }
  }
  return {
    ...pod,
    status: { phase: status?.phase, ready: status?.containerStatuses?.map(({ ready }) => ready) },
  } as object
}
