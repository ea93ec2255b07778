/** Many previews run out while nobody is there to see it. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import { environmentType } from '../crds/environment-type.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { silentLog } from '../runtime/log/log.ts'
import { StoreClock } from '../runtime/store/store-clock.ts'
import { eachOf } from '../testkit/each-of.ts'
import { storeDatabase } from '../testkit/embedded-store.ts'
import { sized } from '../testkit/full.ts'
import { FIGURES } from '../testkit/gen.ts'
import { memoryCredentials } from '../testkit/memory-credentials.ts'
import { modelHost } from '../testkit/model-host.ts'
import { operatorConfig } from './config/config.ts'
import { type Operator, startOperator } from './start.ts'

const MINUTE = 60_000
const NAMESPACE = 'svc-acme-shop'

describe('previews that expire while the operator is down', function () {
  this.timeout(180_000)
  const count = sized(60, 1000)
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  it('are all swept after its start, and none of the others is', async () => {
    const url = await storeDatabase()
    const [user, store] = ['somebody', 'svc-operator'].map(clientName => new EmbeddedResourceStore({ url, clientName }))
    assert.ok(user && store)
    const host = modelHost()
    const credentials = memoryCredentials()
    const ticking = setInterval(() => host.tick(), 5)
    const start = (): Operator =>
      startOperator(operatorConfig({}), { store, credentials, host, log: silentLog, registry: new Registry() })
    ends.push(
      () => user.close(),
      () => store.close(),
      async () => clearInterval(ticking),
    )
    const until = async (isSo: () => Promise<boolean>): Promise<void> => {
      while (!(await isSo())) await sleep(100)
    }
    const allAre = async (phase: string): Promise<boolean> => {
      const { items } = await user.list(environmentType)
      return items.length > 0 && items.every(({ status }) => status?.phase === phase)
    }

    const first = start()
    ends.push(() => first.stop())
    await first.ready()
    await eachOf([...Array(count).keys()], n => {
      const path = { organizationId: 'acme', projectId: 'shop', environmentId: `pr-${n}` }
      const spec = { ...path, kind: 'preview' as const, ttlHours: 1, resources: FIGURES }
      return user.create(environmentType, { namespace: NAMESPACE, name: environmentName(path), spec })
    })
    await until(async () => (await user.list(environmentType)).items.length === count && (await allAre('ready')))
    await first.stop()

    // By turns long over, over but within the minute of grace, and with time to come.
    const now = Date.now()
    const lefts = [-2 * MINUTE, -1000, 30 * MINUTE]
    const expiries = new Map<string, number>()
    const { items } = await user.list(environmentType)
    await eachOf([...items.entries()], ([n, { metadata }]) => {
      const expiresAt = new Date(now + lefts[n % lefts.length]!)
      expiries.set(metadata.uid, expiresAt.getTime())
      const spec = { expiresAt: expiresAt.toISOString() }
      return user.patch(environmentType, metadata, { spec }, { uid: metadata.uid })
    })
    const second = start()
    ends.push(() => second.stop())
    const overdue = [...expiries].filter(([, expiry]) => expiry < now - MINUTE).map(([uid]) => uid)
    await until(async () => {
      const left = new Set((await user.list(environmentType)).items.map(({ metadata }) => metadata.uid))
      return !overdue.some(uid => left.has(uid))
    })
    const records = (await user.list(deletionRecordType)).items
    const gone = new Set(records.map(({ spec }) => spec.uid))
    assert.ok(overdue.every(uid => gone.has(uid)))
    for (const { spec } of records) {
      assert.equal(spec.cause, 'ttl')
      assert.ok(Date.parse(spec.deletedAt) >= expiries.get(spec.uid)! + MINUTE, `${spec.environmentId} went early`)
    }
    assert.ok(count - gone.size >= Math.floor(count / 3), 'what had time to come is there')
  })

  it('are judged by the database’s clock: an operator whose own is an hour ahead sweeps none early', async () => {
    const url = await storeDatabase()
    const time = new StoreClock()
    const user = new EmbeddedResourceStore({ url, clientName: 'somebody' })
    const store = new EmbeddedResourceStore({ url, clientName: 'svc-operator', time })
    const realNow = Date.now
    Date.now = () => realNow() + 60 * MINUTE
    const host = modelHost()
    const ticking = setInterval(() => host.tick(), 5)
    const ports = { store, time, credentials: memoryCredentials(), host, log: silentLog }
    const operator = startOperator(operatorConfig({}), { ...ports, registry: new Registry() })
    ends.push(
      () => user.close(),
      () => store.close(),
      async () => {
        clearInterval(ticking)
        Date.now = realNow
      },
      () => operator.stop(),
    )
    await operator.ready()
    const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'short' }
    const key = { namespace: NAMESPACE, name: environmentName(path) }
    const expiresAt = (leftMs: number): string => new Date(realNow() + leftMs).toISOString()
    const spec = { ...path, kind: 'preview' as const, expiresAt: expiresAt(20 * MINUTE), resources: FIGURES }
    const { metadata } = await user.create(environmentType, { ...key, spec })
    const seen = async () => (await user.get(environmentType, key))?.status
    while ((await seen())?.phase !== 'ready') await sleep(50)
    const labels = { metadata: { annotations: { look: 'again' } } }
    await user.patch(environmentType, key, labels, { uid: metadata.uid })
    await sleep(1_000)
    assert.equal((await seen())?.phase, 'ready')
    await user.patch(environmentType, key, { spec: { expiresAt: expiresAt(-2 * MINUTE) } }, { uid: metadata.uid })
    while ((await seen()) !== undefined) await sleep(50)
  })
})
