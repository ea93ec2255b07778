import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import pg from 'pg'
import { migrateEmbeddedStore } from '../../runtime/embedded/embedded-migrations.ts'
import { migrate, readMigrations } from '../../runtime/postgres/migrate.ts'
import { freePorts } from '../../testkit/free-port.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { programEnvironment } from '../../testkit/program-environment.ts'
import { MIGRATIONS_FOLDER } from '../store/migrations.ts'

const MAIN = new URL('../main.ts', import.meta.url).pathname

describe('the API server as a process of its own', function () {
  this.timeout(120_000) // several processes a test, on a machine that may be busy
  const environmentFor = async (): Promise<Record<string, string>> => {
    const cluster = await testCluster()
    const [database, store] = [
      await cluster.createDatabase({ owner: 'svc_owner' }),
      await cluster.createDatabase({ owner: 'svc_store' }),
    ]
    const port = await freePorts(2)
    return {
      SERVICE_DATABASE_URL: cluster.url(database, 'svc_api'),
      SERVICE_DATABASE_OWNER_URL: cluster.url(database, 'svc_owner'),
      SERVICE_STORE_URL: cluster.url(store, 'svc_store'),
      SERVICE_AUTH_MODE: 'builtin',
      SERVICE_KMS_MASTER_KEY: randomBytes(32).toString('base64'),
      SERVICE_LISTEN: `127.0.0.1:${port}`,
      SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
    }
  }

  interface Run {
    readonly child: ChildProcess
    readonly exited: Promise<number | null>
    readonly output: () => string
  }
  const start = (environment: Readonly<Record<string, string>>): Run => {
    const child = spawn(process.execPath, [MAIN], { env: { ...programEnvironment(), ...environment } })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    return { child, exited: once(child, 'close').then(([code]) => code as number | null), output: () => text }
  }

  it('migrates, serves, shows its metrics and stops at SIGTERM with exit code 0', async () => {
    const environment = await environmentFor()
    const run = start(environment)
    const ready = async (): Promise<boolean> =>
      fetch(`http://${environment['SERVICE_LISTEN']}/readyz`).then(
        answer => answer.ok,
        () => false,
      )
    while (!(await ready())) assert.equal(run.child.exitCode, null, run.output())
    const metrics = await (await fetch(`http://${environment['SERVICE_METRICS_LISTEN']}/metrics`)).text()
    assert.match(metrics, /^svc_http_requests_in_flight 0$/m)
    assert.match(metrics, /^nodejs_eventloop_lag_seconds /m)
    run.child.kill('SIGTERM')
    assert.equal(await run.exited, 0, run.output())
    assert.match(run.output(), /"msg":"Stopping"/)
    const secret = environment['SERVICE_KMS_MASTER_KEY'] ?? ''
    assert.ok(!run.output().includes(secret))
  })

  it('says in one line what is missing or wrong', async () => {
    const environment = await environmentFor()
    for (const [name, value] of [
      ['SERVICE_DATABASE_URL', ''],
      ['SERVICE_KMS_MASTER_KEY', 'c2hvcnQ='],
      ['SERVICE_LISTEN', 'nowhere'],
      ['SERVICE_STORE_URL', ''],
      ['SERVICE_STORE', 'etcd'],
    ] as const) {
      const run = start({ ...environment, [name]: value })
      assert.equal(await run.exited, 1)
      assert.match(run.output(), new RegExp(`^Cannot use ${name}: [^\\n]+\\n$`))
    }
  })

  it('says in one line that its port is taken', async () => {
    const environment = await environmentFor()
    const port = Number(environment['SERVICE_LISTEN']?.split(':')[1])
    const squatter = createServer().listen(port, '127.0.0.1')
    await once(squatter, 'listening')
    const run = start(environment)
    assert.equal(await run.exited, 1, run.output())
    squatter.close()
    assert.match(run.output(), /^Cannot listen: .*EADDRINUSE.*SERVICE_LISTEN.*$/m)
    assert.ok(!/\n\s+at /.test(run.output()))
  })

  describe('that only serves', () => {
    const NEWER = `insert into schema_migrations (number, name, sha256) select max(number) + 1, '9999_later', '' from schema_migrations`
    const OLDER = 'delete from schema_migrations where number = (select max(number) from schema_migrations)'
    const EDITED = `update schema_migrations set sha256 = 'other' where number = 1`

    /** Databases that are up to date, for a process that holds no owner's URL. */
    const servingOnly = async () => {
      const { SERVICE_DATABASE_OWNER_URL: ownerUrl = '', ...environment } = await environmentFor()
      const storeUrl = environment['SERVICE_STORE_URL'] ?? ''
      await migrate(ownerUrl, await readMigrations(MIGRATIONS_FOLDER))
      await migrateEmbeddedStore(storeUrl)
      return { environment, ownerUrl, storeUrl }
    }
    const change = async (url: string, sql: string): Promise<void> => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query(sql)
      await client.end()
    }

    for (const [what, history, of, complaint] of [
      ['a newer control-plane database', NEWER, 'ownerUrl', /9999_later, which this version does not know/],
      ['an older control-plane database', OLDER, 'ownerUrl', /lacks migration/],
      ['a resource store with another past', EDITED, 'storeUrl', /edited after it was applied/],
    ] as const)
      it(`refuses ${what} in one line`, async () => {
        const { environment, ...urls } = await servingOnly()
        await change(urls[of], history)
        const run = start(environment)
        assert.equal(await run.exited, 1, run.output())
        assert.match(run.output(), /^Cannot use the database: .+$/m)
        assert.match(run.output(), complaint)
        assert.ok(!/\n\s+at /.test(run.output()), run.output())
      })
  })

  it('refuses to serve as a role that could change the audit log', async () => {
    const environment = await environmentFor()
    const run = start({ ...environment, SERVICE_DATABASE_URL: environment['SERVICE_DATABASE_OWNER_URL'] ?? '' })
    assert.equal(await run.exited, 1)
    assert.match(run.output(), /could change the audit log/)
  })
})
