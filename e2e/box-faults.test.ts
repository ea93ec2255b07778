/** What may happen to a single box: processes killed, ports taken, folders of others, stops and starts. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIRST_ENVIRONMENT, FIRST_ORGANIZATION, FIRST_PROJECT } from '../box/first-start.ts'
import { environmentType } from '../crds/environment-type.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { openSqlDirect, type SqlSession } from '../testkit/open-sql.ts'
import type { EnvironmentBody } from './api-client.ts'
import { BoxProcess, type Finished } from './box-process.ts'
import { singleBoxWorld } from './single-box-world.ts'

const FIRST = `/v1/organizations/${FIRST_ORGANIZATION}/projects/${FIRST_PROJECT}/environments/${FIRST_ENVIRONMENT}`

const sessionOf = async (box: BoxProcess): Promise<SqlSession> => {
  const { connection_uri } = await box.api().expect<{ connection_uri: string }>(200, 'GET', `${FIRST}/connection`)
  return openSqlDirect(connection_uri)
}

const sql = async <T>(box: BoxProcess, use: (session: SqlSession) => Promise<T>): Promise<T> => {
  const session = await sessionOf(box)
  try {
    return await use(session)
  } finally {
    await session.close()
  }
}

const phase = async (box: BoxProcess): Promise<string> =>
  (await box.api().expect<EnvironmentBody>(200, 'GET', FIRST)).phase

/** The postmasters of the control plane and of every environment. */
const postmasters = (box: BoxProcess): number[] => {
  const { controlPlane, environments } = box.dataFolders()
  return [controlPlane, ...environments].map(folder => findPostmaster(folder)?.pid ?? 0)
}

const oneLine = ({ code, output }: Finished, pattern: RegExp): void => {
  assert.equal(code, 1, output)
  assert.match(output, pattern)
  assert.equal(output.trim().split('\n').length, 1, output)
}

describe('faults of a single box', function () {
  this.timeout(120_000)
  let box: BoxProcess
  before(async () => {
    box = await BoxProcess.start()
    await sql(box, session => session.rows('create table kept as select 42 as answer'))
  })
  after(() => box.remove())

  const rowsAreThere = async (): Promise<void> =>
    assert.deepEqual(await sql(box, session => session.rows('select answer from kept')), [{ answer: 42 }])

  /** `updating` until Postgres answers again; nothing else on the way. */
  const isReady = async (): Promise<void> => {
    const until = Date.now() + 60_000
    for (let said = await phase(box); said !== 'ready'; said = await phase(box)) {
      assert.ok(said === 'updating' && Date.now() < until, `It is ${said}`)
      await sleep(50)
    }
  }

  it('the Postgres of a ready environment is killed: it comes back by itself and the phase never lies', async () => {
    const [, before] = postmasters(box)
    const world = singleBoxWorld(box)
    const over = new AbortController()
    const deadline = setTimeout(() => over.abort(), 60_000)
    try {
      const { resourceVersion: from } = await world.store.list(environmentType)
      const phases: (string | undefined)[] = []
      process.kill(before!, 'SIGKILL')
      for await (const event of world.store.watch(environmentType, { from, signal: over.signal })) {
        if (event.type === 'bookmark' || event.object.status?.phase === phases.at(-1)) continue
        phases.push(event.object.status?.phase)
        if (phases.at(-1) !== 'ready') continue
        // From the moment that it says so, it is so.
        await rowsAreThere()
        break
      }
      assert.deepEqual(phases, ['updating', 'ready'])
      assert.notEqual(postmasters(box)[1], before)
    } finally {
      clearTimeout(deadline)
      over.abort()
      await world.close()
    }
    await isReady()
  })

  it('the control plane is killed: databases run on, and the next start adopts the same processes', async () => {
    const before = postmasters(box)
    assert.equal(before.length, 2)
    const session = await sessionOf(box)
    await box.stop('SIGKILL')
    assert.deepEqual(await session.rows('select answer from kept'), [{ answer: 42 }])
    await box.start()
    assert.deepEqual(postmasters(box), before)
    assert.deepEqual(await session.rows('select answer from kept'), [{ answer: 42 }])
    await session.close()
    await isReady()
    assert.doesNotMatch(box.output, /svc_pat_/)
  })

  it('a second start on the same folder is refused, and the first one serves on', async () => {
    const before = postmasters(box)
    oneLine(await box.run('up.ts'), /Already running on .* \(pid \d+\)/)
    assert.deepEqual(postmasters(box), before)
    await rowsAreThere()
  })

  it('a clean stop ends every process, and the next start brings back what ran', async () => {
    const { code, output } = await box.stop('SIGINT')
    assert.equal(code, 0, output)
    assert.deepEqual(box.postgresProcesses(), [])
    await box.start()
    await isReady()
    await rowsAreThere()
  })

  it('SERVICE_KEEP_DATABASES leaves databases running; down stops them without a control plane', async () => {
    await box.stop()
    await box.start({ SERVICE_KEEP_DATABASES: '1' })
    const before = postmasters(box)
    const { code, output } = await box.stop()
    assert.equal(code, 0, output)
    assert.deepEqual(postmasters(box), before)
    await box.start({ SERVICE_KEEP_DATABASES: '1' })
    assert.deepEqual(postmasters(box), before)
    await box.stop('SIGKILL')
    const down = await box.run('down.ts')
    assert.equal(down.code, 0, down.output)
    assert.deepEqual(box.postgresProcesses(), [])
    await box.start()
    await rowsAreThere()
  })

  it('the machine stops under it: every environment that ran is back after the next start', async () => {
    await box.stop('SIGKILL')
    await box.killPostgres()
    await box.start()
    await isReady()
    await rowsAreThere()
  })

  it('a port in use is one line that says which, and nothing is damaged', async () => {
    await box.stop()
    const taken = createServer()
    const port = Number(new URL(box.baseUrl).port)
    await new Promise<void>(resolve => taken.listen(port, '127.0.0.1', resolve))
    try {
      box.launch()
      oneLine(await box.ended(), new RegExp(`127\\.0\\.0\\.1:${port}.*SERVICE_LISTEN`))
      assert.deepEqual(box.postgresProcesses(), [])
    } finally {
      await new Promise(resolve => taken.close(resolve))
    }
    await box.start()
    await rowsAreThere()
  })

  it('an address that is not this machine’s, or an account that is not there, is one line before anything is started', async () => {
    await box.stop()
    // TEST-NET-3: nobody's.
    const elsewhere = { SERVICE_POSTGRES_LISTEN: '203.0.113.1' }
    const nobody = { SERVICE_POSTGRES_USER: 'no-such-account' }
    for (const detach of ['0', '1']) {
      oneLine(await box.run('up.ts', { ...elsewhere, DETACH: detach }), /203\.0\.113\.1: .*SERVICE_POSTGRES_LISTEN/)
      if (process.getuid?.() === 0)
        oneLine(await box.run('up.ts', { ...nobody, DETACH: detach }), /no-such-account.*SERVICE_POSTGRES_USER/)
    }
    assert.deepEqual(box.postgresProcesses(), [])
    await box.start()
    await rowsAreThere()
  })

  it('make up DETACH=1 returns when all is ready, holding none of its caller’s streams; down stops it', async () => {
    await box.stop()
    // `run` waits for the end of the streams, not just of the process.
    const up = await box.run('up.ts', { DETACH: '1' })
    assert.equal(up.code, 0, up.output)
    assert.match(up.output, /^Ready\./m)
    await rowsAreThere()
    const again = await box.run('up.ts', { DETACH: '1' })
    oneLine(again, /Already running/)
    const down = await box.run('down.ts')
    assert.equal(down.code, 0, down.output)
    assert.deepEqual(box.postgresProcesses(), [])
  })

  it('a folder of a newer version, or of another Postgres, is refused in one line and left as it is', async () => {
    await box.stop()
    const layout = join(box.home, 'layout.json')
    const original = readFileSync(layout, 'utf8')
    for (const [text, pattern] of [
      ['{"layout":2,"postgresMajor":17}\n', /newer version/],
      ['{"layout":1,"postgresMajor":18}\n', /Postgres 18/],
    ] as const) {
      writeFileSync(layout, text)
      const names = readdirSync(box.home).sort()
      box.launch()
      oneLine(await box.ended(), pattern)
      assert.equal(readFileSync(layout, 'utf8'), text)
      assert.deepEqual(readdirSync(box.home).sort(), names)
    }
    writeFileSync(layout, original)
    await box.start()
    await rowsAreThere()
  })

  it('without the key that sealed its secrets nothing is changed; with it, or after a rotation, all is as before', async () => {
    await box.stop()
    const secrets = join(box.home, 'secrets')
    const file = join(secrets, 'master.key')
    const key = readFileSync(file, 'utf8')
    const other = Buffer.alloc(32, 7).toString('base64')
    const passwords = readFileSync(join(secrets, 'control-plane.json'))
    // As if the checkout was cleaned and the databases were elsewhere.
    for (const name of ['secrets', 'credentials.json', 'first-start-done'])
      rmSync(join(box.home, name), { recursive: true })
    const refused = new RegExp(`${box.dataRoot}:.*${file}.*SERVICE_KMS_PREVIOUS_MASTER_KEYS.*make reset`)
    box.launch()
    oneLine(await box.ended(), refused)
    oneLine(await box.run('make-user.ts', { EMAIL: 'ada@example.com' }), refused)
    assert.deepEqual(readdirSync(secrets), [])
    box.launch({ SERVICE_KMS_MASTER_KEY: other })
    oneLine(await box.ended(), /SERVICE_KMS_MASTER_KEY is not the master key/)
    assert.deepEqual(box.postgresProcesses(), [])
    // The old one comes back as a previous one, then is not needed any more.
    await box.start({ SERVICE_KMS_MASTER_KEY: other, SERVICE_KMS_PREVIOUS_MASTER_KEYS: key })
    await rowsAreThere()
    assert.notDeepEqual(readFileSync(join(secrets, 'control-plane.json')), passwords)
    await box.stop()
    writeFileSync(file, other, { mode: 0o600 })
    await box.start()
    await rowsAreThere()
  })

  it('reset asks, and deletes everything only when told yes', async () => {
    const refused = await box.run('reset.ts', {}, 'no\n')
    assert.equal(refused.code, 1)
    await rowsAreThere()
    const done = await box.run('reset.ts', {}, 'yes\n')
    assert.equal(done.code, 0, done.output)
    assert.equal((await box.ended()).code, 0)
    assert.equal(existsSync(box.home), false)
  })
})
