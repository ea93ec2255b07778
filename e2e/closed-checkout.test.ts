/** Root keeps a checkout where nobody else can enter: Postgres, which does not run as root, works all the same. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../testkit/free-port.ts'
import { sized } from '../testkit/full.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import { skipBecause } from '../testkit/skip-because.ts'

const CHECKOUT = join(import.meta.dirname, '..')

describe('a checkout in a folder that only root can enter', function () {
  this.timeout(240_000)
  before(function () {
    if (process.getuid?.() === 0 && sized(0, 1) === 1) return
    skipBecause(this, 'needs root, and copies the whole checkout, so it is part of make verify')
  })

  it('passes make up, make user and make down, and no mode is widened', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'svc-closed-'))
    const checkout = join(parent, 'checkout')
    mkdirSync(checkout, { mode: 0o700 })
    const port = await freePorts(30)
    const make = (target: string, extra: Readonly<Record<string, string>> = {}): string =>
      execFileSync('make', ['--no-print-directory', target], {
        cwd: checkout,
        encoding: 'utf8',
        timeout: 120_000,
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          SERVICE_LISTEN: `127.0.0.1:${port}`,
          SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
          SERVICE_POSTGRES_PORTS: `${port + 2}-${port + 20}`,
          ...extra,
        },
      })
    let location: string | undefined
    try {
      const files = execFileSync('git', ['ls-files', '-z'], { cwd: CHECKOUT })
      execFileSync('sh', ['-c', 'xargs -0 cp --parents -t "$1"', 'sh', checkout], { cwd: CHECKOUT, input: files })
      execFileSync('sh', [
        '-c',
        'cp -al "$1" "$2" 2>/dev/null || cp -a "$1" "$2"',
        'sh',
        `${CHECKOUT}/node_modules`,
        checkout,
      ])
      // The stamp of the installation must be newer than the lock file, and must not be the original's inode.
      const stamp = join(checkout, 'node_modules', '.package-lock.json')
      const installed = readFileSync(stamp)
      rmSync(stamp)
      writeFileSync(stamp, installed)
      const said = make('up', { DETACH: '1' })
      assert.match(said, /^Ready\./m)
      location = readFileSync(join(checkout, '.svc', 'location'), 'utf8').trim()
      assert.match(location, /^\/var\/lib\/svc\//)
      const session = await openSqlDirect(/psql "([^"]+)"/.exec(said)![1]!)
      assert.deepEqual(await session.rows('select 1 as one'), [{ one: 1 }])
      await session.close()
      assert.match(make('user', { EMAIL: 'ada@example.com' }), /^svc_pat_\w+$/m)
      make('down')
      assert.match(make('user', { EMAIL: 'ada@example.com' }), /^svc_pat_\w+$/m)
      assert.equal(statSync(checkout).mode & 0o777, 0o700)
      make('down')
    } finally {
      rmSync(parent, { recursive: true, force: true })
      if (location !== undefined) rmSync(location, { recursive: true, force: true })
    }
  })
})
