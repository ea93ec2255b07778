/** docs/retained-data.md, step by step as it stands there. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { BoxProcess } from './box-process.ts'
import { singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'

const CHECKOUT = join(import.meta.dirname, '..')
const DOCUMENT = readFileSync(join(CHECKOUT, 'docs', 'retained-data.md'), 'utf8')

const sumOfKept = async (socketFolder: string): Promise<unknown[]> => {
  const client = new pg.Client({ host: socketFolder, user: 'postgres', database: 'app', connectionTimeoutMillis: 5000 })
  await client.connect()
  try {
    return (await client.query<{ sum: string }>('select sum(n) from kept')).rows
  } finally {
    await client.end()
  }
}

describe('the data of a deleted environment', function () {
  this.timeout(120_000)
  let box: BoxProcess
  before(async () => {
    box = await BoxProcess.start()
  })
  after(() => box.remove())

  it('is read as the document says, while the box runs and the original stays as it was', async () => {
    const world = singleBoxWorld(box)
    const tenant = await Tenant.create(world)
    await tenant.createEnvironment('gone', { deletion_policy: 'retain' })
    await tenant.sql('gone', session => session.rows('create table kept as select generate_series(1, 1000) n'))
    const { result } = await tenant.run('delete', 'gone')
    await world.close()
    const [kept, until] = [String(result?.['retained_at']), String(result?.['retained_until'])]
    const days = (Date.parse(until) - Date.now()) / 86_400_000
    assert.ok(days > 6.9 && days <= 7, 'the document promises 7 days')

    const [start, stop, ...more] = [...DOCUMENT.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text!)
    assert.ok(start !== undefined && stop !== undefined && more.length === 0)
    const script = [
      'set -eu',
      start.replace(/^kept=\S+/m, `kept='${kept}'`).replace(' start -o', ' start >&2 -o'),
      'echo "$copy"',
      'read -r _ || true',
      stop.replace(' stop', ' stop >&2'),
    ].join('\n')
    const shell = spawn('bash', ['-c', script], { cwd: CHECKOUT, stdio: ['pipe', 'pipe', 'pipe'] })
    let said = ''
    shell.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const ended = once(shell, 'exit')
    let copy: string | undefined
    try {
      for await (const line of createInterface({ input: shell.stdout })) {
        copy = line
        assert.deepEqual(await sumOfKept(copy), [{ sum: '500500' }])
        shell.stdin.end()
      }
    } finally {
      shell.stdin.end() // whatever happened, it goes on to the end of the document
    }
    assert.deepEqual(await ended, [0, null], said)
    assert.ok(copy !== undefined && !existsSync(copy))
    assert.ok(existsSync(join(kept, 'data', 'PG_VERSION')))
    assert.equal(findPostmaster(join(kept, 'data')), undefined)
  })
})
