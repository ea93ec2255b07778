import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { findPostmaster, processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import { freePorts } from '../../../testkit/free-port.ts'
import {
  bringUp,
  newRef,
  openTestHost,
  queryAs,
  TEST_CREDENTIALS,
  TEST_SPEC,
  untilState,
} from '../../../testkit/local-host.ts'
import { testAccount, testFolder } from '../../../testkit/server-files.ts'
import { skipBecause } from '../../../testkit/skip-because.ts'
import type { ConditionError, InstanceRef } from '../host.ts'
import { hostFolders, type InstanceFolders, instanceFolders } from './folders.ts'
import { readIntent } from './intent.ts'
import type { LocalHost } from './local-host.ts'

const failsWith = (reason: string) => (error: unknown) => {
  assert.equal((error as ConditionError).reason, reason, String(error))
  return true
}

describe('the local host, when things go wrong', function () {
  this.timeout(60_000)
  let home: string
  let host: LocalHost

  beforeEach(async () => {
    home = testFolder()
    host = await openTestHost(home)
  })
  afterEach(async () => {
    await host.stopAll({ keepDatabases: false })
    rmSync(home, { recursive: true, force: true })
  })

  const foldersOf = (ref: InstanceRef): InstanceFolders => instanceFolders(hostFolders(home), ref)
  const pidOf = (ref: InstanceRef): number | undefined => findPostmaster(foldersOf(ref).data)?.pid
  const kill = (ref: InstanceRef, signal: NodeJS.Signals): void => {
    process.kill(pidOf(ref)!, signal)
  }
  const stopped = async (ref: InstanceRef): Promise<void> => {
    await host.stop(ref)
    await untilState(host, ref, ['stopped'])
  }
  const reopen = async (): Promise<void> => {
    await host.stopAll({ keepDatabases: true })
    host = await openTestHost(home)
  }
  const occupy = async (port: number): Promise<Server> => {
    const listener = createServer()
    await new Promise<void>(resolve => listener.listen(port, '127.0.0.1', resolve))
    return listener
  }

  it('says that a port is taken, keeps the port, and goes on once it is free', async () => {
    const ref = newRef()
    const { endpoint } = await bringUp(host, ref)
    await stopped(ref)
    const listener = await occupy(endpoint!.port)
    try {
      await assert.rejects(host.start(ref, TEST_SPEC), failsWith('PortTaken'))
      const observed = await untilState(host, ref, ['failed'])
      assert.equal(observed.failure?.reason, 'PortTaken')
      assert.ok(observed.startFailures >= 1)
      assert.deepEqual(observed.endpoint, endpoint)
    } finally {
      await new Promise(resolve => listener.close(resolve))
    }
    const back = await untilState(host, ref, ['running'])
    assert.equal(back.startFailures, 0)
    assert.equal(back.failure, undefined)
    assert.deepEqual(back.endpoint, endpoint)
  })

  it('keeps nothing in /dev/shm, where who cleans up would break a running server', async function () {
    if (process.platform !== 'linux') skipBecause(this, 'only Linux has /dev/shm')
    const ref = newRef()
    await bringUp(host, ref)
    // The workers of a parallel query attach to dynamic shared memory.
    await queryAs(host, ref, 'set debug_parallel_query = on; select count(*) from pg_class')
    assert.deepEqual(await queryAs(host, ref, 'show dynamic_shared_memory_type'), [
      { dynamic_shared_memory_type: 'mmap' },
    ])
    const maps = processesOf(foldersOf(ref).data).map(pid => readFileSync(`/proc/${pid}/maps`, 'utf8'))
    assert.ok(maps.length > 0 && maps.some(text => text.includes('/pg_dynshmem/')))
    assert.ok(!maps.some(text => text.includes('/dev/shm/PostgreSQL.')))
  })

  it('stops what a control plane launched in its last moment, before its lock file was written', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    await host.stopAll({ keepDatabases: true })
    const { intentFile, data } = foldersOf(ref)
    const lock = join(data, 'postmaster.pid')
    writeFileSync(intentFile, readFileSync(intentFile, 'utf8').replace('"wanted": "running"', '"wanted": "stopped"'))
    renameSync(lock, `${lock}.later`)
    try {
      host = await openTestHost(home)
      assert.notEqual((await host.observe(ref)).state, 'stopped')
    } finally {
      renameSync(`${lock}.later`, lock)
    }
    await untilState(host, ref, ['stopped'])
    assert.deepEqual(processesOf(data), [])
  })

  it('restarts a server whose socket was removed, also when it is adopted without one', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    await queryAs(host, ref, 'create table kept as select 42 as answer')
    const comesBack = async (before: number | undefined): Promise<void> => {
      while (pidOf(ref) === before || pidOf(ref) === undefined) await sleep(10)
      await untilState(host, ref, ['running'])
      assert.deepEqual(await queryAs(host, ref, 'select answer from kept'), [{ answer: 42 }])
      // Our own way in is back.
      await host.applyCredentials(ref, TEST_CREDENTIALS)
    }
    let before = pidOf(ref)
    rmSync(foldersOf(ref).sockets, { recursive: true })
    await comesBack(before)
    before = pidOf(ref)
    await host.stopAll({ keepDatabases: true })
    rmSync(foldersOf(ref).sockets, { recursive: true })
    host = await openTestHost(home)
    await comesBack(before)
  })

  it('calls a server that hangs unresponsive, also when it is adopted so, and running once it goes on', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    await host.stopAll({ keepDatabases: true })
    kill(ref, 'SIGSTOP')
    host = await openTestHost(home)
    try {
      await untilState(host, ref, ['unresponsive'])
    } finally {
      kill(ref, 'SIGCONT')
    }
    await untilState(host, ref, ['running'])
    assert.deepEqual(await queryAs(host, ref, 'select 1 as one'), [{ one: 1 }])
  })

  it('gives no port twice, to many at once, after a restart, and beside another home', async () => {
    const first = await freePorts(8)
    const ports = { first, last: first + 7 }
    await host.stopAll({ keepDatabases: false })
    host = await openTestHost(home, { ports })
    const elsewhere = testFolder()
    const other = await openTestHost(elsewhere, { ports })
    try {
      const refs = Array.from({ length: 3 }, (_, index) => newRef(`e${index}`))
      const foreign = Array.from({ length: 2 }, (_, index) => newRef(`f${index}`))
      await Promise.all([
        ...refs.map(ref => host.start(ref, TEST_SPEC)),
        ...foreign.map(ref => other.start(ref, TEST_SPEC)),
      ])
      await Promise.all([
        ...refs.map(ref => untilState(host, ref, ['running'])),
        ...foreign.map(ref => untilState(other, ref, ['running'])),
      ])
      await stopped(refs[0]!)
      await host.stopAll({ keepDatabases: true })
      host = await openTestHost(home, { ports })
      const late = newRef('late')
      await host.start(late, TEST_SPEC)
      const all = [...host.listInstances(), ...other.listInstances()].map(({ port }) => port)
      assert.equal(new Set(all).size, 6)
    } finally {
      await other.stopAll({ keepDatabases: false })
    }
  })

  it('starts everything that was running after the machine died, and nothing else', async () => {
    const [one, two, asleep] = [newRef('one'), newRef('two'), newRef('asleep')]
    await Promise.all([one, two, asleep].map(ref => bringUp(host, ref)))
    await queryAs(host, one, 'create table kept as select 42 as answer')
    await stopped(asleep)
    await host.stopAll({ keepDatabases: true })
    for (const ref of [one, two]) kill(ref, 'SIGKILL')
    // What a dead machine leaves: lock files whose numbers soon belong to others, here to the test itself.
    while ([one, two].some(ref => processesOf(foldersOf(ref).data).length > 0)) await sleep(20)
    host = await openTestHost(home)
    await Promise.all([one, two].map(ref => untilState(host, ref, ['running'])))
    assert.deepEqual(await queryAs(host, one, 'select answer from kept'), [{ answer: 42 }])
    assert.equal((await host.observe(asleep)).state, 'stopped')
    assert.equal(pidOf(asleep), undefined)
  })

  it('is not fooled by a lock file whose number belongs to another environment’s server', async () => {
    const [mine, other] = [newRef('mine'), newRef('other')]
    await Promise.all([mine, other].map(ref => bringUp(host, ref)))
    await stopped(mine)
    const { data } = foldersOf(mine)
    writeFileSync(
      join(data, 'postmaster.pid'),
      `${pidOf(other)!}\n${data}\n1\n5432\n/nowhere\n127.0.0.1\n1 2\nready   \n`,
    )
    assert.equal((await host.observe(mine)).state, 'stopped')
    await host.start(mine, TEST_SPEC)
    await untilState(host, mine, ['running'])
    assert.equal((await host.observe(other)).state, 'running')
  })

  it('calls a frozen server unresponsive after three probes, running when it thaws, and can stop it', async () => {
    const ref = newRef()
    await host.stopAll({ keepDatabases: false })
    host = await openTestHost(home, {
      times: { tick: 20, probeEvery: 50, probeDeadline: 100, firstRetry: 20, cleanStop: 500 },
    })
    await bringUp(host, ref)
    kill(ref, 'SIGSTOP')
    await untilState(host, ref, ['unresponsive'])
    kill(ref, 'SIGCONT')
    await untilState(host, ref, ['running'])
    kill(ref, 'SIGSTOP')
    await untilState(host, ref, ['unresponsive'])
    await host.stop(ref)
    // SIGINT and SIGQUIT reach no frozen process; SIGKILL does, when their time is over.
    await untilState(host, ref, ['stopped'], 30_000)
    // Not its entry in /proc: a process that ended keeps that until we have heard of its end.
    assert.deepEqual(processesOf(foldersOf(ref).data), [])
  })

  it('removes data only once its last process is gone, however long that hangs', async () => {
    const ref = newRef()
    await host.stopAll({ keepDatabases: false })
    host = await openTestHost(home, { times: { tick: 20, cleanStop: 700, firstRetry: 20 } })
    await bringUp(host, ref)
    const { root, data } = foldersOf(ref)
    const pids = processesOf(data)
    // Of a process that ended the entry may stay until we have heard of its end.
    const living = (): number[] =>
      pids.filter(pid => {
        try {
          return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
        } catch {
          return false
        }
      })
    kill(ref, 'SIGSTOP')
    const over = new AbortController()
    const going = host.destroy(ref, 'Delete').finally(() => over.abort())
    let looks = 0
    for (; !over.signal.aborted; looks++) {
      if (!existsSync(data)) assert.deepEqual(living(), [], 'its data is gone and it still runs')
      await sleep(10)
    }
    assert.deepEqual(await going, { done: true })
    assert.ok(looks > 20, `it was gone after ${looks} looks: nothing hung`)
    assert.equal(existsSync(root), false)
  })

  it('tells why Postgres does not start, without paths, and starts it when the cause is gone', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    await stopped(ref)
    const { data } = foldersOf(ref)
    chmodSync(data, 0o777)
    await host.start(ref, TEST_SPEC)
    const observed = await untilState(host, ref, ['failed'])
    assert.equal(observed.failure?.reason, 'StartFailed')
    assert.match(observed.failure.message, /invalid permissions/)
    assert.equal(observed.failure.message.includes(home), false)
    chmodSync(data, 0o700)
    await untilState(host, ref, ['running'])
  })

  it('never makes data anew that was there', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    await queryAs(host, ref, 'create table kept as select 42 as answer')
    await stopped(ref)
    const { data } = foldersOf(ref)
    renameSync(data, `${data}.away`)
    await assert.rejects(host.start(ref, TEST_SPEC), failsWith('DataMissing'))
    await reopen()
    const observed = await untilState(host, ref, ['failed'])
    assert.deepEqual([observed.initialized, observed.failure?.reason], [false, 'DataMissing'])
    assert.equal(existsSync(data), false)
    renameSync(`${data}.away`, data)
    await untilState(host, ref, ['running'])
    assert.deepEqual(await queryAs(host, ref, 'select answer from kept'), [{ answer: 42 }])
  })

  it('leaves a folder alone whose intent it cannot read, and serves the others', async () => {
    const [hurt, fine] = [newRef('hurt'), newRef('fine')]
    await Promise.all([hurt, fine].map(ref => bringUp(host, ref)))
    await stopped(hurt)
    const { intentFile } = foldersOf(hurt)
    const whole = readFileSync(intentFile)
    writeFileSync(intentFile, whole.subarray(0, 40))
    await reopen()
    assert.equal((await host.observe(fine)).state, 'running')
    await assert.rejects(host.start(hurt, TEST_SPEC), failsWith('FolderTaken'))
    await assert.rejects(host.destroy(hurt, 'Delete'), failsWith('IntentUnreadable'))
    writeFileSync(intentFile, whole)
    await reopen()
    await host.start(hurt, TEST_SPEC)
    await untilState(host, hurt, ['running'])
  })

  it('makes a data folder ahead while nothing starts, and takes it for the next environment', async () => {
    await host.stopAll({ keepDatabases: false })
    host = await openTestHost(home, { times: { tick: 20, aheadAfter: 20 } })
    const ahead = join(home, 'ahead')
    const made = async (): Promise<number> => {
      const deadline = Date.now() + 10_000
      for (;;) {
        const [name] = existsSync(ahead) ? readdirSync(ahead).filter(found => !found.includes('.new-')) : []
        if (name !== undefined) return statSync(join(ahead, name)).ino
        assert.ok(Date.now() < deadline, 'no folder is made ahead')
        await sleep(20)
      }
    }
    const first = await made()
    const refs = [newRef('one'), newRef('two')]
    await Promise.all(refs.map(ref => bringUp(host, ref)))
    const inodes = refs.map(ref => statSync(foldersOf(ref).data).ino)
    assert.equal(inodes.includes(first), true)
    assert.equal(new Set([...inodes, await made()]).size, 3)
    assert.deepEqual(await queryAs(host, refs[0]!, 'select 1 as one'), [{ one: 1 }])
  })

  it('keeps a bounded number of log files', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    const { log } = foldersOf(ref)
    for (let file = 10; file < 40; file++) writeFileSync(join(log, `postgres-202001${file}-000000.log`), 'old\n')
    const deadline = Date.now() + 10_000
    while (readdirSync(log).length > 5) {
      assert.ok(Date.now() < deadline, `${readdirSync(log).length} files`)
      await sleep(20)
    }
    assert.equal(readdirSync(log).filter(name => !name.startsWith('postgres-2020')).length, 1)
  })

  it('removes from the trash what has been there long enough, and nothing else', async () => {
    const [old, young] = [newRef('old'), newRef('young')]
    await Promise.all([old, young].map(ref => bringUp(host, ref)))
    const kept = await host.destroy(young, 'Retain')
    assert.ok(Date.parse(kept.retainedUntil!) > Date.now() + 6.9 * 86_400_000)
    await host.stopAll({ keepDatabases: false })
    host = await openTestHost(home, { retentionDays: 0, times: { tick: 20, sweepEvery: 100, firstRetry: 20 } })
    await untilState(host, old, ['running'])
    await host.destroy(old, 'Retain')
    const strange = join(home, 'trash', 'not-ours')
    mkdirSync(strange)
    utimesSync(strange, 0, 0)
    const deadline = Date.now() + 10_000
    const inTrash = (): string[] => readdirSync(join(home, 'trash'))
    while (inTrash().some(name => name.includes(foldersOf(old).name))) {
      assert.ok(Date.now() < deadline, 'the trash is not swept')
      await sleep(20)
    }
    assert.deepEqual(inTrash().sort(), [foldersOf(young).name, 'not-ours'].sort())
    assert.deepEqual(await host.destroy(young, 'Retain'), kept)
    assert.deepEqual(await host.destroy(old, 'Retain'), { done: true })
  })

  it('moves to another address, encrypted, when that is asked for, and signs in by name', async () => {
    const ref = newRef()
    await bringUp(host, ref)
    const pid = pidOf(ref)
    await host.stopAll({ keepDatabases: true })
    host = await openTestHost(home, { reach: { listen: '0.0.0.0', host: 'db.example.org' } })
    const deadline = Date.now() + 20_000
    while (pidOf(ref) === pid) {
      assert.ok(Date.now() < deadline, 'it does not move')
      await sleep(20)
    }
    const { endpoint } = await untilState(host, ref, ['running'])
    assert.deepEqual([endpoint!.host, endpoint!.sslmode], ['db.example.org', 'verify-full'])
    assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
    assert.match(host.caCertificate()!, /BEGIN CERTIFICATE/)
    assert.equal(statSync(join(home, 'secrets', 'postgres-ca.key')).mode & 0o777, 0o600)
    const plain = { host: '127.0.0.1', port: endpoint!.port, user: 'app', database: 'app' }
    const client = new pg.Client({ ...plain, password: TEST_CREDENTIALS.app.password })
    client.on('error', () => undefined)
    await assert.rejects(client.connect(), { code: '28000' }, 'a client without TLS is refused')
  })

  it('survives a full disk of one environment; the others serve on', async function () {
    if (testAccount() === undefined) skipBecause(this, 'not root, so no small filesystem can be mounted')
    const [small, fine] = [newRef('small'), newRef('fine')]
    const { root } = foldersOf(small)
    mkdirSync(root)
    const mount = (...args: string[]): unknown => execFileSync('mount', args, { stdio: 'pipe' })
    try {
      mount('-t', 'tmpfs', '-o', 'size=20m,mode=711', 'tmpfs', root)
    } catch (error) {
      skipBecause(this, `cannot mount a tmpfs (${(error as Error).message.split('\n').at(-2) ?? ''})`)
    }
    try {
      await bringUp(host, fine)
      await assert.rejects(host.start(small, TEST_SPEC), failsWith('DiskFull'))
      assert.deepEqual((await untilState(host, small, ['failed'])).initialized, false)
      mount('-o', 'remount,size=120m', root)
      await bringUp(host, small)
      await queryAs(host, small, 'create table kept as select 42 as answer')
      assert.equal((await host.observe(small)).storage?.low, false)
      const filler = join(root, 'filler')
      const fill = (spareKib: number): void => {
        const free = Number(execFileSync('df', ['--output=avail', '-k', root], { encoding: 'utf8' }).split('\n')[1])
        execFileSync(
          'dd',
          ['if=/dev/zero', `of=${filler}`, 'bs=1k', `count=${free - spareKib}`, 'oflag=append', 'conv=notrunc'],
          { stdio: 'pipe' },
        )
      }
      fill(8 * 1024)
      const deadline = Date.now() + 10_000
      while ((await host.observe(small)).storage?.low !== true) {
        assert.ok(Date.now() < deadline, 'no warning before the disk is full')
        await sleep(20)
      }
      assert.equal((await host.observe(small)).state, 'running')
      fill(0)
      await assert.rejects(
        queryAs(host, small, 'create table big as select repeat(i::text, 100) from generate_series(1, 200000) i'),
      )
      if (pidOf(small) !== undefined) kill(small, 'SIGKILL')
      const observed = await untilState(host, small, ['failed'])
      assert.equal(observed.failure?.reason, 'DiskFull')
      assert.deepEqual(await queryAs(host, fine, 'select 1 as one'), [{ one: 1 }])
      assert.equal((await host.observe(fine)).state, 'running')
      rmSync(filler)
      await untilState(host, small, ['running'], 30_000)
      assert.deepEqual(await queryAs(host, small, 'select answer from kept'), [{ answer: 42 }])
      assert.equal((await readIntent(foldersOf(small).intentFile))?.wanted, 'running')
      await stopped(small)
    } finally {
      await stopped(small)
      execFileSync('umount', [root])
    }
  })
})
