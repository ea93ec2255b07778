import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { V1Secret } from '@kubernetes/client-node'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { describeCredentials } from '../credentials/credentials.contract.ts'
import type { CredentialOwner, CredentialSet } from '../credentials/credentials.ts'
import { rejectsWith } from '../store/resource-store-fixture.contract.ts'
import { KubernetesCredentials, type SecretLayout } from './kubernetes-credentials.ts'
import type { ObjectType } from './kubernetes-object.ts'
import { kubernetesObjects } from './kubernetes-objects.ts'

const secrets: ObjectType<V1Secret> = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' }

const named = (owner: CredentialOwner): CredentialOwner => ({ ...owner, name: `acme.shop.${owner.name}` })

/** The product's, for owners with any name; the cluster would collect the Secrets of owners that do not exist. */
const layout: SecretLayout = {
  ...credentialSecrets,
  names: owner => credentialSecrets.names(named(owner)),
  metadata: owner => ({ labels: credentialSecrets.metadata(owner).labels }),
  app: (owner, credential) => credentialSecrets.app(named(owner), credential),
}

describeCredentials('KubernetesCredentials', async () => {
  const cluster = await apiCluster()
  const client = async (name: string): Promise<KubernetesCredentials> =>
    new KubernetesCredentials(kubernetesObjects(await cluster.open(name), name), layout)
  return {
    writer: await client('operator'),
    reader: await client('apiserver'),
    namespace: await cluster.namespace('kube'),
    close: async () => undefined,
  }
})

describe('the Secrets of KubernetesCredentials', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let namespace: string
  let credentials: KubernetesCredentials
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
    credentials = new KubernetesCredentials(cluster.objects, layout)
  })

  let serial = 0
  const owner = (): CredentialOwner => ({ namespace, name: `env-${++serial}`, uid: randomUUID() })
  const set = (password: string): CredentialSet => ({
    app: { username: 'app', password },
    ops: { username: 'svc_ops', password: `ops-${password}` },
  })
  const secretOf = (one: CredentialOwner, role: 'app' | 'ops'): Promise<V1Secret | undefined> =>
    cluster.objects.get(secrets, { namespace, name: layout.names(one)[role] })
  const shown = async (one: CredentialOwner): Promise<Record<string, string>> =>
    Object.fromEntries(
      Object.entries((await secretOf(one, 'app'))?.data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString(),
      ]),
    )

  it('the app Secret shows the sign-in in force and nothing of ours', async () => {
    const one = owner()
    await credentials.write(one, set('first'))
    await credentials.write(one, set('second'))
    assert.deepEqual(await shown(one), layout.app(one, { username: 'app', password: 'second' }))
    assert.ok(!JSON.stringify(await shown(one)).includes('ops-'))
  })

  it('a repeated write writes nothing, and repairs what was edited or deleted by hand', async () => {
    const one = owner()
    await credentials.write(one, set('p'))
    const versions = async (): Promise<unknown[]> =>
      [await secretOf(one, 'app'), await secretOf(one, 'ops')].map(secret => secret?.metadata?.resourceVersion)
    const before = await versions()
    await credentials.write(one, set('p'))
    assert.deepEqual(await versions(), before)
    const key = { namespace, name: layout.names(one).app }
    await cluster.objects.merge(secrets, key, { stringData: { password: 'wrong' } })
    await credentials.write(one, set('p'))
    assert.equal((await shown(one))['password'], 'p')
    await cluster.objects.delete(secrets, key, { uid: (await secretOf(one, 'app'))?.metadata?.uid ?? '' })
    await credentials.write(one, set('p'))
    assert.equal((await shown(one))['password'], 'p')
  })

  it('what stands beside the sign-in follows its source: until it is written again, it counts as unpublished', async () => {
    let authorities = 'old'
    const telling = new KubernetesCredentials(cluster.objects, layout, async () => ({ 'ca.crt': authorities }))
    const one = owner()
    await telling.write(one, set('p'))
    assert.deepEqual(await shown(one), { ...layout.app(one, set('p').app), 'ca.crt': 'old' })
    assert.equal(await telling.isPublished(one, set('p')), true)
    authorities = 'old and new'
    assert.equal(await telling.isPublished(one, set('p')), false)
    await telling.write(one, set('p'))
    assert.equal((await shown(one))['ca.crt'], 'old and new')
    assert.equal(await telling.isPublished(one, set('p')), true)
  })

  it('after concurrent writes the app Secret shows what is in force', async () => {
    const one = owner()
    await Promise.all(Array.from({ length: 6 }, (_, n) => credentials.write(one, set(`p${n}`))))
    assert.equal((await shown(one))['password'], (await credentials.read(one))?.app.password)
  })

  it('a Secret that belongs to another uid is neither read nor overwritten nor deleted', async () => {
    const one = owner()
    await credentials.write(one, set('p'))
    // Eight characters of a uid may meet.
    const other = { ...one, uid: `${one.uid.slice(0, 8)}${randomUUID().slice(8)}` }
    assert.equal(await credentials.read(other), undefined)
    await rejectsWith(credentials.write(other, set('q')), 'Conflict')
    await credentials.delete(other)
    assert.deepEqual(await credentials.read(one), set('p'))
  })

  it('what somebody broke counts as lost', async () => {
    const one = owner()
    await credentials.write(one, set('p'))
    const key = { namespace, name: layout.names(one).ops }
    for (const broken of ['{', 'null', '{"app":{"username":"app","password":"p"}}']) {
      await cluster.objects.merge(secrets, key, { stringData: { 'credentials.json': broken } })
      assert.equal(await credentials.read(one), undefined, broken)
    }
    await credentials.write(one, set('q'))
    assert.deepEqual(await credentials.read(one), set('q'))
  })

  it('leaves nothing after delete', async () => {
    const one = owner()
    await credentials.write(one, set('p'))
    await credentials.delete(one)
    assert.deepEqual([await secretOf(one, 'app'), await secretOf(one, 'ops')], [undefined, undefined])
  })
})
