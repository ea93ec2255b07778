import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { silentLog } from '../runtime/log/log.ts'
import { embeddedBinaries } from '../runtime/postgres/binaries.ts'
import { findPostmaster, processesOf } from '../runtime/postgres/postmaster-pid.ts'
import { runAs } from '../runtime/postgres/run-as.ts'
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
  const start = (): Promise<ControlPlanePostgres> =>
    startControlPlanePostgres({ folder, account: runAs(undefined), binaries: embeddedBinaries(), log: silentLog })
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
