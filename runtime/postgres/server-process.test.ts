import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { serverFolder, testAccount, testBinaries, testFolder, testTemplate } from '../../testkit/server-files.ts'
import { writeConfigFiles } from './config-files.ts'
import { clusterState } from './control-file.ts'
import { createDataFolder } from './create-data-folder.ts'
import { findPostmaster, processesOf } from './postmaster-pid.ts'
import {
  adoptServer,
  launchServer,
  type ServerFiles,
  type ServerProcess,
  type SocketAddress,
  stopServer,
  waitUntilReady,
} from './server-process.ts'
import { COMMON_SETTINGS, sizedSettings } from './settings.ts'

const FIGURES = { memoryBytes: 128 * 1024 ** 2, storageBytes: 1024 ** 3, cpus: 1, maxConnections: 10 }

describe('a Postgres server as a process', () => {
  let files: ServerFiles
  let address: SocketAddress
  const launched: ServerProcess[] = []

  beforeEach(async () => {
    const folder = testFolder()
    address = { socketFolder: serverFolder(folder, 's'), port: 5432 }
    const dataFolder = join(folder, 'data')
    await createDataFolder((await testTemplate()).folder, dataFolder)
    const configFile = await writeConfigFiles(folder, testAccount(), {
      place: { listen: '', ...address, logFolder: serverFolder(folder, 'log'), name: 'test' },
      settings: [COMMON_SETTINGS, sizedSettings(FIGURES)],
      accesses: [],
    })
    files = { dataFolder, configFile, startLog: join(folder, 'start.log') }
  })

  afterEach(async () => {
    for (const server of launched.splice(0))
      if (server.alive()) await stopServer(server, { fastMs: 5000, immediateMs: 5000, killMs: 5000 })
  })

  const launch = async (): Promise<ServerProcess> => {
    const server = await launchServer(await testBinaries(), testAccount(), files)
    launched.push(server)
    return server
  }
  const launchReady = async (): Promise<ServerProcess> => {
    const server = await launch()
    await waitUntilReady(server, address, 15_000)
    return server
  }
  const query = async (sql: string): Promise<unknown[]> => {
    const client = new pg.Client({ host: address.socketFolder, port: 5432, user: 'postgres', database: 'postgres' })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }

  it('starts from a copied template with the settings that were asked for', async () => {
    await launchReady()
    const rows = await query(`select name, setting from pg_settings where name in ('archive_mode', 'data_checksums',
      'fsync', 'max_connections', 'password_encryption', 'allow_alter_system', 'shared_preload_libraries') order by name`)
    assert.deepEqual(Object.fromEntries((rows as { name: string; setting: string }[]).map(r => [r.name, r.setting])), {
      allow_alter_system: 'off',
      archive_mode: 'on',
      data_checksums: 'on',
      fsync: 'on',
      max_connections: '18',
      password_encryption: 'scram-sha-256',
      shared_preload_libraries: 'pg_stat_statements',
    })
    assert.deepEqual(await query(`select datlocprovider, datlocale from pg_database where datname = 'template1'`), [
      { datlocprovider: 'b', datlocale: 'C.UTF-8' },
    ])
  })

  it('runs in a process group of its own, so that a signal to our terminal does not reach it', async () => {
    const server = await launchReady()
    const { stdout } = spawnSync('ps', ['-o', 'pgid=', '-p', String(server.pid)], { encoding: 'utf8' })
    assert.equal(Number(stdout.trim()), server.pid)
  })

  it('is a process of its data folder from its launch on, before it has gone there', async () => {
    const server = await launch()
    assert.deepEqual(processesOf(files.dataFolder), [server.pid])
  })

  it('stops cleanly, keeps rows, and leaves no process', async () => {
    const server = await launchReady()
    await query('create table kept as select 42 as answer')
    assert.equal(clusterState(files.dataFolder), 'not shut down')
    assert.equal(await stopServer(server, { fastMs: 15_000 }), 'clean')
    assert.deepEqual(processesOf(files.dataFolder), [])
    assert.deepEqual(await server.exited, { code: 0, signal: undefined })
    await launchReady()
    assert.deepEqual(await query('select answer from kept'), [{ answer: 42 }])
  })

  it('tells a kill from a clean stop, and recovers', async () => {
    const server = await launchReady()
    await query('create table kept as select 42 as answer')
    process.kill(server.pid, 'SIGKILL')
    assert.equal((await server.exited).signal, 'SIGKILL')
    assert.equal(await stopServer(server, { fastMs: 15_000 }), 'unclean')
    await launchReady()
    assert.deepEqual(await query('select answer from kept'), [{ answer: 42 }])
  })

  it('adopts a server that an earlier process launched, and can stop it', async () => {
    const server = await launchReady()
    const adopted = adoptServer(files.dataFolder)
    assert.equal(adopted?.pid, server.pid)
    assert.equal(adopted.alive(), true)
    await waitUntilReady(adopted, address, 5000)
    assert.equal(await stopServer(adopted, { fastMs: 15_000 }), 'clean')
    assert.equal(adopted.alive(), false)
    await adopted.exited
    assert.equal(adoptServer(files.dataFolder), undefined)
  })

  it('believes no postmaster.pid whose number belongs to another program', async () => {
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore' })
    try {
      writeFileSync(
        join(files.dataFolder, 'postmaster.pid'),
        `${stranger.pid}\n${files.dataFolder}\n1\n5432\n/s\n\n1 2\nready   \n`,
      )
      assert.equal(findPostmaster(files.dataFolder), undefined)
      assert.equal(adoptServer(files.dataFolder), undefined)
    } finally {
      stranger.kill('SIGKILL')
    }
  })

  it('leaves a frozen server alone unless it may be killed', async () => {
    const server = await launchReady()
    process.kill(server.pid, 'SIGSTOP')
    assert.equal(await stopServer(server, { fastMs: 200, immediateMs: 200 }), 'still there')
    assert.equal(await stopServer(server, { fastMs: 100, killMs: 10_000 }), 'unclean')
    assert.deepEqual(processesOf(files.dataFolder), [])
  })

  it('says that a server exited while it waits for it', async () => {
    writeFileSync(files.configFile, 'no_such_setting = 1\n')
    const server = await launch()
    await assert.rejects(waitUntilReady(server, address, 10_000), /exited while starting/)
  })

  it('copies a template once and never over a data folder', async () => {
    const before = statSync(join(files.dataFolder, 'PG_VERSION'))
    assert.equal(await createDataFolder((await testTemplate()).folder, files.dataFolder), false)
    assert.equal(statSync(join(files.dataFolder, 'PG_VERSION')).ino, before.ino)
  })

  it('leaves nothing of a copy that failed', async () => {
    const target = join(testFolder(), 'data')
    await assert.rejects(createDataFolder('/nonexistent/template', target), /No such file/)
    assert.equal(existsSync(target), false)
  })

  it('refuses a socket path that the system would cut', async () => {
    await assert.rejects(
      writeConfigFiles(testFolder(), testAccount(), {
        place: { listen: '', port: 20_000, socketFolder: `/tmp/${'x'.repeat(90)}`, logFolder: 'log', name: 'long' },
        settings: [],
        accesses: [],
      }),
      /at most 107/,
    )
  })
})
