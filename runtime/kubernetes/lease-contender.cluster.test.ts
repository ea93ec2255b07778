import assert from 'node:assert/strict'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { LeaseContender } from './lease-contender.ts'

describe('LeaseContender on an API server', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let namespace: string
  let path: string
  let nowMs: number
  before(async () => {
    cluster = await apiCluster()
  })
  beforeEach(async () => {
    namespace = await cluster.namespace('kube')
    path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
    nowMs = 1_000_000
  })

  const contender = (identity: string): LeaseContender =>
    new LeaseContender({ api: cluster.api, namespace, name: 'l', identity, durationSeconds: 15, now: () => nowMs })
  const leads = async (one: LeaseContender): Promise<boolean> => (await one.contend()).leading
  const lease = (): Promise<{ spec: Record<string, unknown> }> => cluster.api.call({ method: 'GET', path: `${path}/l` })
  const held = (spec: object): Promise<unknown> =>
    cluster.api.call({
      method: 'POST',
      path,
      body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' }, spec },
    })

  it('judges a term by what it sees itself, not by times that others wrote', async () => {
    for (const [renewTime, name] of [
      ['2001-01-01T00:00:00.000000Z', 'a clock that is behind'],
      ['2099-01-01T00:00:00.000000Z', 'a clock that is ahead'],
    ] as const) {
      await held({ holderIdentity: name, leaseDurationSeconds: 10, renewTime, leaseTransitions: 3 })
      const one = contender('one')
      assert.equal(await leads(one), false)
      nowMs += 9_999
      assert.equal(await leads(one), false)
      nowMs += 1
      assert.equal(await leads(one), true)
      const { spec } = await lease()
      assert.deepEqual([spec['holderIdentity'], spec['leaseTransitions']], ['one', 4])
      assert.match(String(spec['renewTime']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      await cluster.api.call({ method: 'DELETE', path: `${path}/l` })
    }
  })

  it('starts waiting anew with every sign of life', async () => {
    const [one, two] = [contender('one'), contender('two')]
    assert.equal(await leads(one), true)
    for (let round = 0; round < 3; round++) {
      assert.equal(await leads(two), false)
      nowMs += 14_000
      assert.equal(await leads(one), true)
    }
    assert.equal(await leads(two), false)
    nowMs += 15_000
    assert.equal(await leads(two), true)
    assert.equal(await leads(one), false)
  })

  it('lets exactly one of many take a free lease, and one of many that wait take one whose term has passed', async () => {
    const all = Array.from({ length: 8 }, (_, n) => contender(`c${n}`))
    const winners = async (): Promise<number> => (await Promise.all(all.map(leads))).filter(Boolean).length
    assert.equal(await winners(), 1)
    const first = (await lease()).spec['holderIdentity']
    const others = all.filter((_, n) => `c${n}` !== first)
    await Promise.all(others.map(leads))
    nowMs += 15_000
    assert.equal((await Promise.all(others.map(leads))).filter(Boolean).length, 1)
  })

  it('takes back at once what it held under the same identity, and counts no transition', async () => {
    assert.equal(await leads(contender('one')), true)
    const again = await contender('one').contend()
    assert.deepEqual([again.leading, again.transitions], [true, 0])
  })

  it('a release is taken up at once, and releases nothing that is another’s', async () => {
    const [one, two] = [contender('one'), contender('two')]
    assert.equal(await leads(one), true)
    await two.release()
    assert.equal((await lease()).spec['holderIdentity'], 'one')
    await one.release()
    assert.equal((await lease()).spec['holderIdentity'], '')
    assert.equal(await leads(two), true)
    await one.release()
    assert.equal((await lease()).spec['holderIdentity'], 'two')
  })

  it('counts a term from before the request, which is when others cannot have seen it yet', async () => {
    const one = contender('one')
    const before = nowMs
    const contending = one.contend()
    nowMs += 5_000
    assert.equal((await contending).asOf, before)
  })
})
