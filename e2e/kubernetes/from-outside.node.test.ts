/** A client outside the cluster, by a port of the nodes: it is told a name that the server proves. */
import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import type { V1Node } from '@kubernetes/client-node'
import { services } from '../../operator/host/kubernetes/object-types.ts'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { openSession, type SqlSession } from '../../testkit/open-sql.ts'
import type { ConnectionBody } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import { startClientPod } from './client-pod.ts'
import { installedRelease, type Release } from './release.ts'

const NODE: ObjectType<V1Node> = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', clusterScoped: true }

describe('a client outside the cluster', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let address: string
  before(async () => {
    release = await installedRelease()
    const { items } = await release.cluster.objects.list(NODE)
    address = items[0]?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address ?? ''
    assert.notEqual(isIP(address), 0, 'The node has no address')
    tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('before', { kind: 'preview' })
  })

  /** As libpq does with `verify-full`: the server proves the very host of the URI. */
  const connect = ({ external_uri, ca_certificate }: ConnectionBody): Promise<SqlSession> => {
    const uri = new URL(external_uri ?? '')
    assert.equal(uri.searchParams.get('sslmode'), 'verify-full')
    return openSession({
      ...{ host: uri.hostname, port: Number(uri.port), user: uri.username, database: uri.pathname.slice(1) },
      password: decodeURIComponent(uri.password),
      ssl: {
        ca: ca_certificate ?? '',
        checkServerIdentity: (_, certificate) => checkServerIdentity(uri.hostname, certificate),
      },
    })
  }
  const exposed = async (id: string): Promise<ConnectionBody> => {
    for (const until = Date.now() + 180_000; ; ) {
      const connection = await tenant.connection(id)
      if (connection.external_uri !== undefined) return connection
      assert.ok(Date.now() < until, `${id} has no way from outside`)
      await new Promise(resolve => setTimeout(resolve, 200))
    }
  }
  const answer = async (id: string): Promise<unknown> => {
    const session = await connect(await exposed(id))
    try {
      return (await session.rows('select 42 as answer'))[0]
    } finally {
      await session.close()
    }
  }

  it('is told of no way while there is none', async () => {
    assert.equal((await tenant.connection('before')).external_uri, undefined)
  })

  it('signs in through a port of the nodes, with verify-full by their address, as soon as the environment is ready', async () => {
    const exposure = `environments.preview.exposure`
    await release.upgrade([`${exposure}.type=NodePort`, `${exposure}.host=${address}`])
    await tenant.createEnvironment('after', { kind: 'preview' })
    const connection = await tenant.connection('after')
    assert.equal(new URL(connection.external_uri ?? '').hostname, address, 'told with the first ready')
    assert.deepEqual(await answer('after'), { answer: 42 })
    // The same with libpq, which has its own mind about addresses in certificates.
    const client = await startClientPod(release, tenant.key('after'))
    const uri = connection.external_uri ?? ''
    assert.equal((await client.psqlTo(uri, 'select 42')).trim(), '42')
    const service = await release.cluster.objects.list(services, { namespace: tenant.key('after').namespace })
    const inner = service.items.find(({ metadata }) => metadata?.name?.startsWith('after-'))?.spec?.clusterIP ?? ''
    const elsewhere = uri.replace(/@.*\/app/, `@${inner}:5432/app`)
    await assert.rejects(client.psqlTo(elsewhere, 'select 1'), /does not match host name/)
    await client.remove()
  })

  it('signs in to one that ran before its kind was exposed, without a restart of it', async () => {
    assert.deepEqual(await answer('before'), { answer: 42 })
    await tenant.run('delete', 'before')
    await tenant.run('delete', 'after')
    await release.upgrade([])
  })
})
