/**
 * What no test cluster of ours does: volumes that grow, sizes that are enforced, load balancers, network policies in force.
 * Each is proven by its content, as the API server keeps it; and what is not proven by that is printed.
 */
import assert from 'node:assert/strict'
import { checkServerIdentity } from 'node:tls'
import { claims, type FullPod, networkPolicies, pods, services } from '../../operator/host/kubernetes/object-types.ts'
import { openSession } from '../../testkit/open-sql.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

const RESOURCES = { cpu: '250m', memory: '192Mi', storage: '3Gi', maxConnections: 20 }
const BALANCED = { type: 'LoadBalancer', annotations: { 'example.com/pool': 'db' }, sourceRanges: ['192.0.2.0/24'] }

describe('beyond what test clusters do', function () {
  this.timeout(240_000)
  let scene: OperatorScene
  let inside: FakedEnvironment
  let outside: FakedEnvironment

  before(async function () {
    scene = await OperatorScene.start(this, 'beyond', {
      SERVICE_ENVIRONMENTS: JSON.stringify({ preview: { exposure: BALANCED } }),
    })
    inside = await scene.made({ resources: RESOURCES })
    outside = await scene.made({ kind: 'preview', ttlHours: 5 })
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const only = <O>({ items }: { readonly items: readonly O[] }): O => {
    assert.equal(items.length, 1)
    return items[0]!
  }
  const place = ({ key }: FakedEnvironment): { namespace: string } => ({ namespace: key.namespace })

  describe('a volume that grows', () => {
    it('is asked for by its claim: volume-growth.cluster.test.ts', function () {
      skipBecause(this, 'no disk grows here: the claim’s request is what volume-growth.cluster.test.ts proves')
    })
  })

  describe('sizes', () => {
    it('are those of the spec, in the claim and in the limits of the pod', async () => {
      const { objects } = scene.faked.cluster
      const claim = only(await objects.list(claims, place(inside)))
      assert.equal(claim.spec?.resources?.requests?.['storage'], String(3 * 2 ** 30))
      const [container] = (only(await objects.list(pods, place(inside))) as FullPod).spec!.containers
      const { limits, requests } = container!.resources!
      assert.equal(limits?.['cpu'], '250m')
      assert.ok(['192Mi', String(192 * 2 ** 20)].includes(limits['memory'] ?? ''), limits['memory'])
      assert.equal(requests?.['memory'], limits['memory'])
    })
    it('are enforced by the disk', function () {
      skipBecause(this, 'volumes here are folders: nothing stops a database at the size of its claim')
    })
  })

  describe('a load balancer', () => {
    it('is asked for as an admin says, and its address is told once it has one', async () => {
      const { objects } = scene.faked.cluster
      const service = only(await objects.list(services, place(outside)))
      assert.equal(service.spec?.type, 'LoadBalancer')
      assert.equal(service.metadata?.annotations?.['example.com/pool'], 'db')
      assert.deepEqual(service.spec.loadBalancerSourceRanges, BALANCED.sourceRanges)
      assert.equal((await outside.get())?.status?.endpoint?.external, undefined)
      const key = { ...place(outside), name: service.metadata.name! }
      const status = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } }
      await objects.merge(services, key, { status }, 'status')
      await scene.until(
        'the address is told',
        async () => (await outside.get())?.status?.endpoint?.external,
        seen => seen?.host === '192.0.2.7' && seen.port === 5432,
      )
      assert.equal(only(await objects.list(services, place(inside))).spec?.type, 'ClusterIP')
      // Whoever was told is met by a server that proves this very address.
      const { caCertificate: ca = '' } = (await outside.get())?.status?.endpoint ?? {}
      const proven: string[] = []
      const session = openSession({
        ...{ host: service.spec.clusterIP ?? '', port: 5432, user: 'app', password: 'wrong', database: 'app' },
        ssl: {
          ca,
          checkServerIdentity: (_, certificate) => {
            const wrong = checkServerIdentity('192.0.2.7', certificate)
            proven.push(wrong?.message ?? '192.0.2.7')
            return wrong
          },
        },
      })
      await assert.rejects(session, { code: '28P01' })
      assert.deepEqual(proven, ['192.0.2.7'])
    })
    it('carries connections', function () {
      skipBecause(this, 'there is no load balancer here: what it is asked for and what is told of it are proven')
    })
  })

  describe('a network policy', () => {
    const policiesOf = async (environment: FakedEnvironment) => {
      const { items } = await scene.faked.cluster.objects.list(networkPolicies, place(environment))
      const [forAll, exposed] = items.toSorted((a, b) => a.metadata!.name!.length - b.metadata!.name!.length)
      assert.equal(items.length, 2)
      return { forAll: forAll!.spec!, exposed: exposed!.spec! }
    }
    const podOf = async (environment: FakedEnvironment) =>
      only(await scene.faked.cluster.objects.list(pods, place(environment)))
    const portsOf = (rules: readonly { readonly ports?: readonly { readonly port?: unknown }[] }[]) =>
      rules.map(({ ports }) => ports?.map(({ port }) => port))

    // The client's type has another name for it.
    const wireForm = (rule: unknown) => rule as { readonly from?: unknown }

    it('is for every pod of Postgres, and lets in the namespace and the operator’s, on the port of Postgres, and nobody out', async () => {
      const { forAll } = await policiesOf(inside)
      const pod = await podOf(inside)
      for (const [label, value] of Object.entries(forAll.podSelector!.matchLabels!))
        assert.equal(pod.metadata?.labels?.[label], value)
      assert.equal(forAll.podSelector!.matchExpressions, undefined)
      assert.deepEqual([...forAll.policyTypes!].sort(), ['Egress', 'Ingress'])
      assert.deepEqual(forAll.egress ?? [], [])
      assert.deepEqual(portsOf(forAll.ingress!), [[5432]])
      assert.deepEqual(wireForm(forAll.ingress![0]).from, [
        { podSelector: {} },
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': scene.faked.namespace } } },
      ])
    })
    it('lets everybody in to the kind that is exposed, and to no other', async () => {
      for (const environment of [inside, outside]) {
        const { exposed } = await policiesOf(environment)
        const [{ key, operator, values } = assert.fail('It is for every kind')] = exposed.podSelector!.matchExpressions!
        assert.deepEqual([operator, values], ['In', ['preview']])
        const kind = (await podOf(environment)).metadata?.labels?.[key]
        assert.equal(kind, environment === outside ? 'preview' : 'staging')
        assert.deepEqual(portsOf(exposed.ingress!), [[5432]])
        assert.equal(wireForm(exposed.ingress![0]).from, undefined)
      }
    })
    it('is in force', function () {
      skipBecause(this, 'network policies are kept and not enforced here: their content is proven')
    })
  })
})
