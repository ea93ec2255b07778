/** The values for high availability on a real cluster, with a database of one's own: pods go, and nobody's work is lost or done twice. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, ApiClient, type CallOptions } from '../../e2e/api-client.ts'
import type { ClusterWorld } from '../../e2e/kubernetes/cluster-world.ts'
import { type Installation, installationOn, RELEASE_NAMESPACE } from '../../e2e/kubernetes/installation.ts'
import { nothingIsLeft } from '../../e2e/kubernetes/left-behind.ts'
import { Tenant } from '../../e2e/tenant.ts'
import { blocksBelow } from '../../testkit/documented-blocks.ts'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'

const ENVIRONMENTS = 4

/** A client that does what ours says of lost answers: the same call again, with the same key. */
class PatientClient extends ApiClient {
  override async call<Body>(method: string, path: string, options: CallOptions = {}): Promise<Answer<Body>> {
    const same = { ...options, key: options.key === undefined ? randomUUID() : options.key }
    for (const until = Date.now() + 60_000; ; ) {
      try {
        const answer = await super.call<Body>(method, path, same)
        if (answer.status !== 503 || Date.now() > until) return answer
      } catch (error) {
        if (Date.now() > until) throw error
      }
      await sleep(100)
    }
  }
}

describe('the values for high availability, with a database of one’s own', function () {
  this.timeout(420_000)
  let cluster: TestCluster
  let installation: Installation
  let database: OwnPostgres
  let world: ClusterWorld | undefined
  let folder: string
  const system = (...args: string[]): Promise<string> =>
    installation.kubectl.must(['--namespace', RELEASE_NAMESPACE, ...args])
  const podsOf = async (program: string): Promise<readonly string[]> => {
    const selected = ['pods', '--selector', `app.kubernetes.io/component=${program}`]
    return (await system('get', ...selected, '--output', 'jsonpath={.items[*].metadata.name}')).split(' ').sort()
  }

  before(async () => {
    cluster = await nodeCluster()
    installation = installationOn(cluster, 'charts/svc-platform/values-ha.yaml')
    const { kubectl } = installation
    const releases = await installation.helm('list', '--all-namespaces')
    // One a cluster: this one would take over what is somebody else's.
    assert.doesNotMatch(releases, /\bsvc-(platform|crds)-/, 'the charts are installed on this cluster already')
    database = await startOwnPostgres(kubectl, await cluster.namespace('ha'))
    folder = mkdtempSync(join(tmpdir(), 'svc-ha-'))
    writeFileSync(join(folder, 'ca.crt'), database.ca)
    await kubectl.must(['create', 'namespace', RELEASE_NAMESPACE])

    // What the guide says of such a database, with its host, passwords and authority.
    const [roles, secret, ...more] = blocksBelow('docs/install.md', 'A database of yours')
    assert.ok(roles && secret && more.length === 0)
    const password = randomBytes(16).toString('hex')
    await database.sql(roles.replaceAll('…', password))
    const filled = secret
      .replaceAll('…', password)
      .replaceAll('db.example.com', database.host)
      .replaceAll('sslmode=verify-full', 'sslmode=verify-full&sslrootcert=/etc/svc/database/ca.crt')
    await succeeded('bash', ['-euc', `${filled.trimEnd()} --from-file=ca.crt`], {
      cwd: folder,
      env: { KUBECONFIG: cluster.kubeconfig },
    })
    await installation.upgrade(['database.external.caKey=ca.crt', 'apiServer.settings.SERVICE_AUTH_MODE=builtin'])
    const entered = await installation.enter()
    world = { ...entered.world, api: new PatientClient(entered.world.api.baseUrl, entered.token) }
  })
  after(async () => {
    await world?.close()
    await installation.uninstall()
    await installation.helm('uninstall', 'svc-crds', '--ignore-not-found')
    rmSync(folder, { recursive: true, force: true })
  })

  it('give two pods of each, of which one may be missing, and no database of the chart’s', async () => {
    for (const program of ['apiserver', 'operator']) {
      assert.equal((await podsOf(program)).length, 2, program)
      const budget = [
        'get',
        'poddisruptionbudget',
        `svc-${program}`,
        '--output',
        'jsonpath={.status.disruptionsAllowed}',
      ]
      assert.equal(await system(...budget), '1', program)
    }
    assert.equal(await system('get', 'statefulsets,persistentvolumeclaims', '--output', 'name'), '')
    assert.ok((await podsOf('operator')).includes(await leader()))
    assert.match(await database.sql('\\connect svc\nselect count(*) from environments'), /^0$/m)
  })

  /** The pod of the operator that leads. */
  const leader = async (): Promise<string> => {
    const holder = await system('get', 'lease', 'svc-operator', '--output', 'jsonpath={.spec.holderIdentity}')
    return (await podsOf('operator')).find(pod => holder.startsWith(pod)) ?? holder
  }

  /** Ends the leading operator and one API server, and waits until there are two of each again. */
  const losePods = async (...how: string[]): Promise<void> => {
    const [apiserver = ''] = await podsOf('apiserver')
    await system('delete', 'pod', await leader(), apiserver, ...how)
    for (const program of ['apiserver', 'operator'])
      await system('rollout', 'status', `deployment/svc-${program}`, '--timeout=120s')
  }

  it('lose the leading operator and an API server, twice, while environments live: each call ends right, and once', async () => {
    assert.ok(world)
    const tenant = await Tenant.create(world)
    const ids = Array.from({ length: ENVIRONMENTS }, (_, index) => `ha-${index + 1}`)
    const made = Promise.all(ids.map(id => tenant.createEnvironment(id, { deletion_policy: 'delete' })))
    await sleep(500)
    await Promise.all([made, losePods()])
    for (const id of ids)
      await tenant.sql(id, session => session.rows(`create table mine as select '${id}'::text as id`))

    const [first = '', ...others] = ids
    const slept = tenant.run('suspend', first)
    await Promise.all([slept, ...others.map(id => tenant.inPhase(id, 'ready')), losePods('--now')])
    await tenant.run('resume', first)
    for (const id of ids)
      assert.deepEqual(await tenant.sql(id, session => session.rows('select id from mine')), [{ id }])

    const told = (await tenant.auditEvents()).filter(({ action }) => /_environment$/.test(action))
    const sums = new Map<string, number>()
    for (const { action } of told) sums.set(action, (sums.get(action) ?? 0) + 1)
    assert.deepEqual(Object.fromEntries(sums), {
      create_environment: ENVIRONMENTS,
      suspend_environment: 1,
      resume_environment: 1,
    })
    await Promise.all(ids.map(id => tenant.run('delete', id)))
    await nothingIsLeft({ cluster }, tenant.key(first).namespace)
  })
})
