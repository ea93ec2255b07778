/** The operator is killed after every single change that it makes, one after the other: the end is always the same. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { instanceName, LABELS, shortUid } from '../../crds/metadata.ts'
import type { KubernetesObject } from '../../runtime/kubernetes/kubernetes-object.ts'
import { VOLUME } from '../../testkit/kubernetes/claim-faker.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import type { FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { CountedChanges } from './counted-changes.ts'
import { CRASH_ROWS, type CrashRow } from './crash-rows.ts'
import { everythingIn, normalized } from './everything-in.ts'
import { FakedEnvironment } from './faked-environment.ts'
import type { OperatorProcess } from './operator-process.ts'
import { proxiedOperator } from './proxied-operator.ts'
import { signInBySecret } from './sign-in-by-secret.ts'

/** What is there at the end, without what differs from run to run. */
interface Found {
  readonly objects: Readonly<Record<string, KubernetesObject>>
  readonly volumes: Readonly<Record<string, KubernetesObject & { readonly spec?: unknown }>>
  readonly records: readonly { readonly cause: string; readonly retained: boolean; readonly retainedAt: string }[]
}

/** What an operator still writes when an operation is done comes within this time. */
const QUIET_MS = 400

describe('the operator dies after every change that it makes', function () {
  this.timeout(600_000)
  let faked: FakedCluster
  let proxy: FaultProxy
  let operator: OperatorProcess
  let started = false

  before(async function () {
    faked = await fakedCluster(this)
    ;({ proxy, operator } = await proxiedOperator(faked, 'the-only-one'))
    started = true
    await operator.start()
  })
  after(async () => {
    if (!started) return
    await operator.stop()
    await proxy.stop()
    await faked.assertSound()
  })

  const back = (): void => {
    if (!operator.running) operator.launch()
  }
  const done = (environment: FakedEnvironment): Promise<void> => environment.done({ meanwhile: back, tell: tail })
  const tail = (): string => operator.output.split('\n').slice(-15).join('\n')

  /** Brings an environment to where a row's verb is asked for. */
  const prepare = async ({ before }: CrashRow): Promise<FakedEnvironment> => {
    const environment = await FakedEnvironment.prepare(faked)
    for (const [earlier, change] of before) {
      await environment.ask(earlier, change)
      await done(environment)
    }
    await sleep(QUIET_MS)
    return environment
  }

  /** All that is there at the end, as it would be in every run. */
  const finalState = async (environment: FakedEnvironment, uid: string): Promise<Found> => {
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
    const records = await faked.store.list(deletionRecordType, { namespace: faked.namespace })
    const mine = records.items.filter(record => record.spec.uid === uid)
    return {
      objects: normalized(await everythingIn(faked.cluster.api, namespace), words),
      volumes: normalized(await volumesIn(namespace), words),
      records: mine.map(({ spec: { cause, retained, retainedAt = '' } }) => ({
        ...{ cause, retained },
        retainedAt: words.reduce((text, [value, word]) => text.replaceAll(value, word), retainedAt),
      })),
    }
  }

  /** What the volumes say that are bound there. */
  const volumesIn = async (namespace: string): Promise<ReadonlyMap<string, KubernetesObject>> => {
    const bound = (await faked.cluster.objects.list(VOLUME)).items.filter(
      ({ spec, status }) => spec?.claimRef?.namespace === namespace && status?.phase === 'Bound',
    )
    return new Map(
      bound.map(({ metadata = {}, spec }) => {
        const { labels = {}, annotations = {} } = metadata
        return ['Volume', { metadata: { labels, annotations }, spec: spec?.persistentVolumeReclaimPolicy }]
      }),
    )
  }

  /** Asks, waits for the end, and for the silence after it; the operator dies after this many changes. */
  const run = async (
    { verb, change }: CrashRow,
    environment: FakedEnvironment,
    dieAfter?: number,
  ): Promise<{ readonly found: Found; readonly changes: readonly string[]; readonly died: boolean }> => {
    let died = false
    const act = (): void => {
      died = true
      operator.signal('SIGKILL')
    }
    const places = [environment.key.namespace, faked.namespace]
    const counted = new CountedChanges(proxy, places, dieAfter === undefined ? undefined : { count: dieAfter, act })
    const before = (await environment.get())?.metadata.uid
    await environment.ask(verb, change)
    const uid = before ?? (await environment.get())!.metadata.uid
    await done(environment)
    for (let seen = -1; seen !== counted.seen.length || !operator.running; ) {
      seen = counted.seen.length
      back()
      await sleep(QUIET_MS)
    }
    counted.end()
    // The comparison below knows nothing of values: that the kept password is the server's is proven by its use.
    if (verb !== 'delete' && verb !== 'suspend') await signInBySecret(environment, uid)
    return { found: await finalState(environment, uid), changes: counted.seen, died }
  }

  /** The claim and its volume are there, and say what they are. */
  const isRetained = ({ objects, volumes, records }: Found): void => {
    const claims = Object.entries(objects).filter(([name]) => name.startsWith('PersistentVolumeClaim '))
    const kept = [...claims.map(([, claim]) => claim), ...Object.values(volumes)]
    assert.deepEqual(
      kept.map(({ metadata }) => metadata?.labels?.[LABELS.retained]),
      ['true', 'true'],
    )
    assert.deepEqual(
      Object.values(volumes).map(({ spec }) => spec),
      ['Retain'],
    )
    const retainedAt = `persistentvolumeclaim/NAMESPACE/${claims[0]?.[0].split(' ')[1]}`
    assert.deepEqual(records, [{ cause: 'request:op-2', retained: true, retainedAt }])
  }

  for (const [title, row] of Object.entries(CRASH_ROWS))
    it(`${title}: dies after each change in turn`, async () => {
      const { found: expected, changes } = await run(row, await prepare(row))
      assert.ok(changes.length > 0, 'The operator changed nothing')
      if (row === CRASH_ROWS['delete, and retain']) isRetained(expected)
      // Two status writes of one run may be one in another, so the end is where a change did not come in two runs.
      let count = 1
      for (let missing = 0; missing < 2; ) {
        const { found, died } = await run(row, await prepare(row), count)
        assert.deepEqual(found, expected, `after change ${count}, ${changes[count - 1] ?? 'beyond an undisturbed run'}`)
        if (died) count++
        missing = died ? 0 : missing + 1
      }
      assert.ok(count > 1, 'The operator never died')
    })
})
