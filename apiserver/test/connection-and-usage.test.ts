import assert from 'node:assert/strict'
import pg from 'pg'
import type { Endpoint } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { keyOf } from '../../lib/model/resource.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, created, finished, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import { testCluster } from '../../testkit/postgres.ts'

const CREDENTIALS = {
  app: { username: 'app', password: 'p@ss/w:rd canary-app' },
  ops: { username: 'svc_ops', password: 'canary-ops' },
}

describe('connection and usage', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ caCertificate: 'PEM', tenantAddress: (await testCluster()).socketFolder })
    team = await makeTeam(api)
  })
  after(() => api.stop())

  /** An environment that its operator says is at an endpoint. */
  const standing = async (env: string, endpoint: Endpoint): Promise<void> => {
    await created(team.developer, env)
    const resource = await api.resource(ORG, PROJECT, env)
    assert.ok(resource)
    const { uid, namespace, name } = resource.metadata
    await api.credentials.write({ uid, namespace, name }, CREDENTIALS)
    await api.store.patchStatus(environmentType, keyOf(resource), { endpoint }, { uid })
    for (;;) {
      const row = await api.plane.database.row<{ endpoint: unknown }>(
        `select status -> 'endpoint' as endpoint from environments where environment_id = $1 and replaced_at is null`,
        [env],
      )
      if (row?.endpoint !== undefined && row.endpoint !== null) return
    }
  }

  const LOOPBACK: Endpoint = { host: '127.0.0.1', port: 20001, sslmode: 'disable' }

  describe('getConnection', () => {
    before(() => standing('main', LOOPBACK))

    it('is made of the endpoint and the tenant’s credential', async () => {
      const answer = await team.developer.call('getConnection', { params: at('main') })
      assert.equal(answer.status, 200)
      const uri = new URL(answer.body.connection_uri)
      assert.deepEqual(
        [uri.username, decodeURIComponent(uri.password), uri.host, uri.pathname, uri.search],
        ['app', CREDENTIALS.app.password, '127.0.0.1:20001', '/app', '?sslmode=disable'],
      )
      assert.equal('ca_certificate' in answer.body, false)
    })

    it('brings the authority’s certificate where the server speaks TLS', async () => {
      await standing('secure', { host: 'db.example.com', port: 20002, sslmode: 'verify-full' })
      const { body } = await team.developer.call('getConnection', { params: at('secure') })
      assert.equal(body.ca_certificate, 'PEM')
      assert.match(body.connection_uri, /@db\.example\.com:20002\/app\?sslmode=verify-full$/)
    })

    it('has a way from outside, and the certificate that the endpoint itself tells', async () => {
      const external = { host: 'nodes.example.com', port: 30001 }
      const inside = { host: 'main.svc-acme.svc', port: 5432, sslmode: 'verify-full' as const }
      await standing('exposed', { ...inside, external, caCertificate: 'PEM of the cluster' })
      const { body } = await team.developer.call('getConnection', { params: at('exposed') })
      assert.equal(body.ca_certificate, 'PEM of the cluster')
      assert.match(body.connection_uri, /@main\.svc-acme\.svc:5432\/app\?sslmode=verify-full$/)
      assert.match(
        body.external_uri ?? '',
        /^postgresql:\/\/app:.+@nodes\.example\.com:30001\/app\?sslmode=verify-full$/,
      )
    })

    it('leaves an audit event for each read, and none for a refused one', async () => {
      const reads = async (): Promise<number> => {
        const { body } = await team.admin.call('listAuditEvents', { params: { org: ORG }, query: { limit: 200 } })
        return body.events.filter(event => event.action === 'read_connection').length
      }
      const before = await reads()
      await team.developer.call('getConnection', { params: at('main') })
      await team.viewer.call('getConnection', { params: at('main') })
      assert.equal(await reads(), before + 1)
    })

    for (const [name, value] of [
      ['Origin', 'https://console.example.com'],
      ['Sec-Fetch-Site', 'same-origin'],
      ['Cookie', 'a=b'],
    ] as const)
      it(`refuses a browser, known by ${name}`, async () => {
        // fetch keeps such headers from scripts, node's client does not.
        const { sendRaw } = await import('../../testkit/raw-http.ts')
        const answer = await sendRaw(api.url, {
          method: 'GET',
          target: `/v1/organizations/${ORG}/projects/${PROJECT}/environments/main/connection`,
          headers: [
            ['Authorization', `Bearer ${team.developer.token}`],
            [name, value],
          ],
        })
        assert.deepEqual([answer.status, (answer.body as { code: string }).code], [403, 'server_to_server_only'])
        assert.ok(!answer.text.includes('canary'))
      })

    it('is for developers, not for viewers or strangers', async () => {
      const viewer = await team.viewer.call('getConnection', { params: at('main') })
      assert.deepEqual([viewer.status, viewer.body.code], [403, 'forbidden'])
      const stranger = await team.outsider.call('getConnection', { params: at('main') })
      assert.deepEqual([stranger.status, stranger.body.code], [404, 'organization_not_found'])
    })

    it('has nothing to say of an environment that is gone or has no endpoint yet', async () => {
      await created(team.developer, 'fresh')
      const fresh = await team.developer.call('getConnection', { params: at('fresh') })
      assert.deepEqual([fresh.status, fresh.body.code], [409, 'invalid_phase'])
      const { body } = await team.developer.call('deleteEnvironment', { params: at('fresh') })
      await finished(team.developer, body.id)
      const gone = await team.developer.call('getConnection', { params: at('fresh') })
      assert.deepEqual([gone.status, gone.body.code], [409, 'invalid_phase'])
      assert.equal((gone.body as { phase?: string }).phase, 'deleted')
    })

    it('puts no secret into the log', () => {
      assert.ok(api.logged.length > 20)
      assert.deepEqual(
        api.logged.filter(line => line.includes('canary') || line.includes(team.developer.token)),
        [],
      )
    })
  })

  describe('getUsage', () => {
    let tenant: pg.Client
    before(async () => {
      const cluster = await testCluster()
      const admin = new pg.Client({ connectionString: cluster.url('postgres') })
      await admin.connect()
      await admin.query('create role svc_ops login; create role app login')
      await admin.query('create database app')
      await admin.end()
      tenant = new pg.Client({ connectionString: cluster.url('app', 'app') })
      await tenant.connect()
      await standing('measured', { host: 'outside.example.invalid', port: 5432, sslmode: 'disable' })
    })
    after(() => tenant.end())

    const capOf = async (env: string, name: string) => {
      const { status, body } = await team.viewer.call('getUsage', { params: at(env) })
      assert.equal(status, 200)
      const cap = body.caps.find(each => each.name === name)
      assert.ok(cap, name)
      return cap
    }

    it('measures the bytes of the database against the plan', async () => {
      const before = await capOf('measured', 'database_bytes')
      assert.equal(before.limit, 2 ** 30)
      await tenant.query(
        'create temp table filler as select repeat(md5(n::text), 100) as text from generate_series(1, 2000) n',
      )
      const after = await capOf('measured', 'database_bytes')
      assert.ok((after.used ?? 0) - (before.used ?? 0) > 100_000, `${before.used} -> ${after.used}`)
    })

    it('counts the tenant’s sessions and not its own', async () => {
      assert.equal((await capOf('measured', 'connections')).used, 1)
      const cluster = await testCluster()
      const second = new pg.Client({ connectionString: cluster.url('app', 'app') })
      await second.connect()
      const { used } = await capOf('measured', 'connections')
      await second.end()
      assert.equal(used, 2)
    })

    it('shows every cap, the price and the month', async () => {
      const { body } = await team.viewer.call('getUsage', { params: at('measured') })
      assert.deepEqual(
        body.caps.map(each => each.name),
        ['database_bytes', 'storage_bytes', 'egress_bytes', 'connections', 'queue_messages', 'monthly_active_users'],
      )
      assert.deepEqual(body.flat_price, { amount_cents: 0, currency: 'EUR', interval: 'month' })
      const { start, end } = body.billing_period
      assert.ok(Date.parse(start) <= Date.now() && Date.now() < Date.parse(end))
    })

    it('says that it cannot measure what does not answer, and is no error for that', async () => {
      await standing('broken', { host: '127.0.0.1', port: 1, sslmode: 'disable' })
      assert.equal((await capOf('broken', 'database_bytes')).used, null)
    })

    it('pins the session against what a tenant may set on its database', async () => {
      const cluster = await testCluster()
      const admin = new pg.Client({ connectionString: cluster.url('app') })
      await admin.connect()
      await admin.query(`alter database app set search_path = 'evil'; alter database app set statement_timeout = 1`)
      assert.ok(((await capOf('measured', 'database_bytes')).used ?? 0) > 0)
      await admin.query('alter database app reset all')
      await admin.end()
    })
  })
})
