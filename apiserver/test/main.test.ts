import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { freePorts } from '../../testkit/free-port.ts'
import { testCluster } from '../../testkit/postgres.ts'

const MAIN = new URL('../main.ts', import.meta.url).pathname

describe('the API server as a process of its own', () => {
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
    const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env['PATH'], ...environment } })
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

  it('refuses to serve as a role that could change the audit log', async () => {
    const environment = await environmentFor()
    const run = start({ ...environment, SERVICE_DATABASE_URL: environment['SERVICE_DATABASE_OWNER_URL'] ?? '' })
    assert.equal(await run.exited, 1)
    assert.match(run.output(), /could change the audit log/)
  })
})
