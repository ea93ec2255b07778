import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { silentLog } from '../runtime/log/log.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { runAs } from '../runtime/postgres/run-as.ts'
import { fastFolder } from '../testkit/fast-folder.ts'
import { readKeyring } from './master-key.ts'
import type { Progress } from './progress.ts'
import { startControlPlane } from './start-control-plane.ts'

describe('the start of the control plane', function () {
  this.timeout(60_000)
  const root = fastFolder('svc-start-')
  before(() => chmodSync(root, 0o755))
  after(() => rmSync(root, { recursive: true, force: true }))

  it('waits for its Postgres to come back when that dies while it is brought up to date', async () => {
    const home = { controlPlane: join(root, 'control-plane'), dataRoot: root, secrets: join(root, 'secrets') }
    mkdirSync(home.secrets, { mode: 0o700 })
    const killed: number[] = []
    const progress: Progress = {
      during: (what, step) => {
        const pid = findPostmaster(join(home.controlPlane, 'data'))?.pid
        if (what === 'Bringing the databases up to date' && pid !== undefined) {
          process.kill(pid, 'SIGKILL')
          killed.push(pid)
        }
        return step()
      },
    }
    const keyring = readKeyring(home.secrets, { masterKey: undefined, previousMasterKeys: '' })
    const controlPlane = await startControlPlane(home, runAs(undefined), keyring, silentLog, progress)
    try {
      assert.equal(killed.length, 1)
      const client = new pg.Client({ connectionString: controlPlane.urls.serving })
      await client.connect()
      const { rows } = await client.query<{ n: number }>('select count(*)::int as n from environments')
      await client.end()
      assert.deepEqual(rows, [{ n: 0 }])
      assert.notEqual(findPostmaster(join(home.controlPlane, 'data'))?.pid, killed[0])
    } finally {
      await controlPlane.postgres.stop()
    }
  })
})
