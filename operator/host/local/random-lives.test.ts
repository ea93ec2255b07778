import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { findPostmaster, processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
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
import { hostFolders, instanceFolders } from './folders.ts'
import type { LocalHost } from './local-host.ts'

const EVENTS = ['start', 'stop', 'bigger', 'crash', 'control plane dies', 'machine dies', 'wait'] as const

describe('an instance that anything happens to', function () {
  this.timeout(300_000)
  const home = testFolder()
  let host: LocalHost
  before(async () => {
    host = await openTestHost(home)
  })
  after(() => host.stopAll({ keepDatabases: false }))

  it('ends as the last word said, with every row that was acknowledged', async () => {
    const lives = fc.array(fc.constantFrom(...EVENTS), { minLength: 3, maxLength: sized(6, 10) })
    await fc.assert(
      fc.asyncProperty(lives, async events => {
        const ref = newRef('life')
        const { data } = instanceFolders(hostFolders(home), ref)
        await bringUp(host, ref)
        await queryAs(host, ref, 'create table kept (event int)')
        let spec = TEST_SPEC
        let wanted: 'running' | 'stopped' = 'running'
        const acknowledged: number[] = []
        const kill = (): void => {
          const pid = findPostmaster(data)?.pid
          if (pid !== undefined) process.kill(pid, 'SIGKILL')
        }
        for (const [index, event] of events.entries()) {
          await queryAs(host, ref, `insert into kept values (${index})`).then(
            () => acknowledged.push(index),
            () => undefined,
          )
          switch (event) {
            case 'bigger':
              spec = { ...spec, maxConnections: spec.maxConnections + 1 }
              wanted = 'running'
              await host.start(ref, spec)
              break
            case 'start':
              wanted = 'running'
              await host.start(ref, spec)
              break
            case 'stop':
              wanted = 'stopped'
              await host.stop(ref)
              break
            case 'crash':
              kill()
              break
            case 'control plane dies':
              await host.stopAll({ keepDatabases: true })
              host = await openTestHost(home)
              break
            case 'machine dies':
              await host.stopAll({ keepDatabases: true })
              kill()
              host = await openTestHost(home)
              break
            case 'wait':
              await sleep(100)
          }
        }
        if (wanted === 'stopped') {
          await untilState(host, ref, ['stopped'])
          assert.deepEqual(processesOf(data), [])
          await host.start(ref, spec)
        }
        const limit = String(spec.maxConnections + 8)
        const deadline = Date.now() + 20_000
        for (;;) {
          await untilState(host, ref, ['running'])
          const shown = await queryAs(host, ref, 'show max_connections').catch(() => [])
          if (shown[0]?.['max_connections'] === limit) break
          assert.ok(Date.now() < deadline, `max_connections is ${JSON.stringify(shown)}, not ${limit}`)
          await sleep(20)
        }
        assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
        const rows = await queryAs(host, ref, 'select event from kept order by event')
        const found = new Set(rows.map(({ event }) => event))
        assert.deepEqual(
          acknowledged.filter(index => !found.has(index)),
          [],
          'acknowledged rows are gone',
        )
        while (!(await host.destroy(ref, 'Delete')).done);
        assert.deepEqual(processesOf(data), [])
        assert.deepEqual(host.listInstances(), [])
      }),
      { numRuns: sized(2, 30), endOnFailure: true },
    )
  })
})
