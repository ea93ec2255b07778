import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { silentLog } from '../runtime/log/log.ts'
import { findPostmaster, processesOf } from '../runtime/postgres/postmaster-pid.ts'
import { runAs } from '../runtime/postgres/run-as.ts'
import { testBinaries } from '../testkit/server-files.ts'
import { type ControlPlaneUrls, controlPlaneUrls, ensureControlPlaneDatabases } from './control-plane-databases.ts'
import {
  type ControlPlanePostgres,
  startControlPlanePostgres,
  stopControlPlanePostgres,
} from './control-plane-postgres.ts'

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('the control-plane Postgres', () => {
  let home: string
  let folder: string
  let secrets: string
  let running: ControlPlanePostgres
  let urls: ControlPlaneUrls
  const start = async (): Promise<ControlPlanePostgres> =>
    startControlPlanePostgres({ folder, account: runAs(undefined), binaries: await testBinaries(), log: silentLog })
  const postmaster = (): number | undefined => findPostmaster(join(folder, 'data'))?.pid

  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'svc-cp-'))
    chmodSync(home, 0o755)
    folder = join(home, 'control-plane')
    secrets = join(home, 'secrets')
    mkdirSync(secrets, { mode: 0o700 })
    running = await start()
    await ensureControlPlaneDatabases(secrets, running.address)
    urls = controlPlaneUrls(secrets, running.address)
  })
  after(async () => {
    await running.stop()
    rmSync(home, { recursive: true })
  })

  it('gives each role its own database and no other', async () => {
    assert.deepEqual(await query(urls.owner, 'select current_user as u, current_database() as d'), [
      { u: 'svc_owner', d: 'svc' },
    ])
    assert.deepEqual(await query(urls.serving, 'select current_user as u'), [{ u: 'svc_api' }])
    assert.deepEqual(await query(urls.store, 'create table t (id int); select current_user as u').then(() => []), [])
    const elsewhere = [
      urls.store.replace('/svc_resources?', '/svc?'),
      urls.serving.replace('/svc?', '/svc_resources?'),
      urls.owner.replace('/svc?', '/postgres?'),
      urls.serving.replace('/svc?', '/template1?'),
    ]
    for (const url of elsewhere) await assert.rejects(query(url, 'select 1'), { code: '42501' })
    await assert.rejects(query(urls.serving.replace(/:[^:@/]+@/, ':wrong@'), 'select 1'), { code: '28P01' })
    await assert.rejects(query(urls.serving, 'create table t (id int)'), { code: '42501' })
  })

  it('is prepared again without harm', async () => {
    await query(urls.owner, 'create table kept as select 7 as n')
    await ensureControlPlaneDatabases(secrets, running.address)
    assert.deepEqual(await query(urls.owner, 'select n from kept'), [{ n: 7 }])
  })

  it('is adopted by the next start: the same process', async () => {
    const before = postmaster()
    running.leave()
    running = await start()
    assert.equal(running.adopted, true)
    assert.equal(postmaster(), before)
    assert.deepEqual(await query(urls.serving, 'select 1 as one'), [{ one: 1 }])
  })

  it('comes back by itself when it is killed, at the same place', async () => {
    const before = postmaster()!
    await query(urls.owner, 'create table before_the_crash as select 1 as n')
    process.kill(before, 'SIGKILL')
    const until = Date.now() + 20_000
    for (;;) {
      try {
        assert.deepEqual(await query(urls.owner, 'select n from before_the_crash'), [{ n: 1 }])
        if (postmaster() !== before) break
      } catch (error) {
        if (Date.now() > until) throw error
      }
      await sleep(20)
    }
  })

  it('starts although its old lock files name a process that lives: its number was given to another program', async () => {
    await running.stop()
    const account = runAs(undefined)
    // A program of Postgres' own account: of any other one Postgres would notice by itself.
    const other = spawn('sleep', ['60'], account === undefined ? {} : { uid: account.uid, gid: account.gid, cwd: '/' })
    await once(other, 'spawn')
    const sockets = running.address.socketFolder
    mkdirSync(sockets, { recursive: true, mode: 0o700 })
    const lines = [other.pid, join(folder, 'data'), 1_700_000_000, 5432, sockets, '', '', 'ready', '']
    for (const file of [join(folder, 'data', 'postmaster.pid'), join(sockets, '.s.PGSQL.5432.lock')])
      writeFileSync(file, lines.join('\n'))
    if (account !== undefined) chownSync(sockets, account.uid, account.gid)
    try {
      running = await start()
      assert.equal(running.adopted, false)
      assert.deepEqual(await query(urls.owner, 'select n from kept'), [{ n: 7 }])
      assert.equal(other.exitCode ?? other.signalCode, null, 'the other program was left alone')
    } finally {
      other.kill('SIGKILL')
    }
  })

  it('leaves no folder for its socket behind, however long the path of its home', async () => {
    const socketFolders = (): string[] =>
      readdirSync('/tmp').filter(name => /^svc-([A-Za-z0-9]{6}|[0-9a-f]{12})$/.test(name))
    const deep = join(home, 'x'.repeat(100), 'control-plane')
    mkdirSync(join(deep, '..'), { mode: 0o755 })
    const before = socketFolders()
    const options = { folder: deep, account: runAs(undefined), binaries: await testBinaries(), log: silentLog }
    let first: string | undefined
    for (let round = 0; round < 2; round++) {
      const far = await startControlPlanePostgres(options)
      assert.equal(far.address.socketFolder, (first ??= far.address.socketFolder))
      await far.stop()
    }
    const added = socketFolders().filter(name => !before.includes(name))
    assert.ok(!added.some(name => first === join('/tmp', name)), `${first} is still there`)
  })

  it('is stopped whoever started it, and stays stopped', async () => {
    await running.stop()
    assert.deepEqual(processesOf(join(folder, 'data')), [])
    await stopControlPlanePostgres(folder)
    running = await start()
    assert.equal(running.adopted, false)
    running.leave()
    await stopControlPlanePostgres(folder)
    await sleep(300)
    assert.deepEqual(processesOf(join(folder, 'data')), [])
    running = await start()
  })
})
