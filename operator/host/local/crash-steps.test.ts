import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import { processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import { sized } from '../../../testkit/full.ts'
import {
  bringUp,
  newRef,
  openTestHost,
  queryAs,
  TEST_CREDENTIALS,
  TEST_SPEC,
  untilState,
} from '../../../testkit/local-host.ts'
import { testFolder } from '../../../testkit/server-files.ts'
import { folderName, hostFolders, instanceFolders } from './folders.ts'
import type { LocalHost } from './local-host.ts'

type Verb = 'start' | 'stop' | 'retain' | 'delete'

const CHILD = new URL('../../../testkit/host-crash-child.ts', import.meta.url).pathname

describe('a control plane that dies after any of its changes to the machine', function () {
  this.timeout(300_000)
  const home = testFolder()
  const folders = hostFolders(home)
  let host: LocalHost

  before(async () => {
    // Makes the template, which is not what is tested here.
    host = await openTestHost(home)
    await bringUp(host, newRef('bystander'))
    await host.stopAll({ keepDatabases: true })
  })
  after(async () => {
    host = await openTestHost(home)
    await host.stopAll({ keepDatabases: false })
  })

  /** Runs the verb in a process that dies after its n-th change; answers what it printed, if it lived. */
  const runChild = (verb: Verb, uid: string, n: number): string => {
    const run = spawnSync(process.execPath, [CHILD, home, verb, uid, String(n)], { encoding: 'utf8', timeout: 60_000 })
    if (run.signal === 'SIGKILL') return ''
    assert.equal(run.status, 0, run.stderr)
    return run.stdout.trim()
  }

  const prepare = async (verb: Verb, uid: string): Promise<void> => {
    if (verb === 'start') return
    host = await openTestHost(home)
    const ref = newRef('crash', uid)
    await bringUp(host, ref)
    await queryAs(host, ref, 'create table kept as select 42 as answer')
    await host.stopAll({ keepDatabases: true })
  }

  const CONVERGES: Record<Verb, (ref: ReturnType<typeof newRef>) => Promise<void>> = {
    start: async ref => {
      await bringUp(host, ref)
      assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
    },
    stop: async ref => {
      await host.stop(ref)
      const { cleanStop } = await untilState(host, ref, ['stopped'])
      assert.equal(cleanStop, true)
      await host.start(ref, TEST_SPEC)
      await untilState(host, ref, ['running'])
      assert.deepEqual(await queryAs(host, ref, 'select answer from kept'), [{ answer: 42 }])
    },
    retain: async ref => {
      let destroyed = await host.destroy(ref, 'Retain')
      while (!destroyed.done) destroyed = await host.destroy(ref, 'Retain')
      const { trash, root } = instanceFolders(folders, ref)
      assert.equal(destroyed.retainedAt, trash)
      assert.ok(Date.parse(destroyed.retainedUntil!) > Date.now())
      assert.deepEqual([isInitialized(join(trash, 'data')), isInitialized(join(root, 'data'))], [true, false])
      assert.deepEqual(processesOf(join(trash, 'data')), [])
      assert.deepEqual(await host.destroy(ref, 'Retain'), destroyed)
    },
    delete: async ref => {
      while (!(await host.destroy(ref, 'Delete')).done);
      const left = [folders.environments, folders.trash].flatMap(folder => readdirSync(folder))
      assert.deepEqual(
        left.filter(name => name.includes(folderName(ref))),
        [],
      )
    },
  }

  for (const verb of ['start', 'stop', 'retain', 'delete'] as const)
    it(`finds the way from there to the end of a ${verb}`, async () => {
      const first = randomUUID()
      await prepare(verb, first)
      const steps = Number(runChild(verb, first, 0))
      assert.ok(steps >= 3, `${verb} makes ${steps} changes`)
      const all = Array.from({ length: steps }, (_, index) => index + 1)
      const some = [1 + Math.floor(Math.random() * steps)]
      for (const n of sized(1, steps) === steps ? all : some) {
        const uid = randomUUID()
        const ref = newRef('crash', uid)
        await prepare(verb, uid)
        assert.equal(runChild(verb, uid, n), '', `${verb} should die at change ${n}`)
        host = await openTestHost(home)
        await CONVERGES[verb](ref)
        const { root, data } = instanceFolders(folders, ref)
        if (verb !== 'start' && verb !== 'stop') assert.equal((await host.observe(ref)).state, 'absent')
        else
          assert.deepEqual(
            readdirSync(root).filter(name => name.includes('.new-')),
            [],
            `left after change ${n}`,
          )
        while (!(await host.destroy(ref, 'Delete')).done);
        assert.deepEqual(processesOf(data), [])
        assert.equal(host.listInstances().filter(({ uid: listed }) => listed === uid).length, 0)
        await host.stopAll({ keepDatabases: true })
      }
    })
})
