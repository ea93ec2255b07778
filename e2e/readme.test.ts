/** The README's own commands, run as they are printed: what it says that somebody sees, they see. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { blocksBelow } from '../testkit/documented-blocks.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import { BoxProcess } from './box-process.ts'

const CHECKOUT = join(import.meta.dirname, '..')

/** A line that is to be repeated until it says something: repeated. */
const untilSucceeded = (script: string): string =>
  script.replace(/^(curl -s \$base\/v1\/operations\/.*\| json \.state)\b.*$/m, (_line, command: string) =>
    [`until [ "$state" = succeeded ]; do state=$(${command}); [ "$state" != failed ]; sleep 0.2; done`].join('\n'),
  )

describe('the README', function () {
  this.timeout(120_000)
  let box: BoxProcess
  let folder: string
  before(async () => {
    const environment = { SERVICE_POSTGRES_LISTEN: '0.0.0.0', SERVICE_POSTGRES_HOST: 'localhost' }
    box = await BoxProcess.start({ environment })
    folder = mkdtempSync(join(tmpdir(), 'svc-readme-'))
    symlinkSync(box.home, join(folder, '.svc'))
  })
  after(async () => {
    await box.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs a script in a folder where the box' home is `.svc`, and answers what it prints. */
  const run = async (script: string): Promise<string> => {
    // `make` would look for what to install; what it runs for us is this.
    const make = `make() { [ "$1" = user ]; shift; env "$@" node ${CHECKOUT}/box/make-user.ts; }`
    // The program is not on every machine; what it is given is what counts.
    const psql = `psql() { echo "psql $1"; }`
    const { stdout } = await promisify(execFile)(
      'bash',
      ['-euo', 'pipefail', '-c', [`state=''`, make, psql, script].join('\n')],
      { cwd: folder, timeout: 60_000, env: { ...box.environment, HOME: folder } },
    )
    return stdout
  }

  it('leads a newcomer from the first call to the last, and to a second user', async () => {
    const [calls, members, ...more] = blocksBelow('README.md', 'First calls')
    assert.ok(calls && members && more.length === 0)
    const lines = (await run(untilSucceeded(calls))).trim()
    const [connection, removal] = lines.split(/(?<=\})(?=\{)/).map(text => JSON.parse(text) as Record<string, unknown>)
    assert.match(String(connection?.['connection_uri']), /^postgresql:\/\/app:/)
    assert.equal(removal?.['kind'], 'delete_environment')
    const settings = calls.slice(0, calls.indexOf('\n\n'))
    const said = await run(`${settings}\n${members}`)
    assert.match(said, /^svc_pat_\w+$/m)
    assert.match(said, /"email":"ada@example\.com".*"role":"developer"/)
  })

  it('gets a client to a database that speaks TLS', async () => {
    const [calls = ''] = blocksBelow('README.md', 'First calls')
    const [reach, ...more] = blocksBelow('README.md', 'Databases that others can reach')
    assert.ok(reach && more.length === 0)
    const said = await run(`${calls.slice(0, calls.indexOf('\n\n'))}\n${reach}`)
    const uri = new URL(/^psql (.*)$/m.exec(said)![1]!)
    assert.equal(uri.searchParams.get('sslmode'), 'verify-full')
    const session = await openSqlDirect(uri.href)
    assert.deepEqual(await session.rows('select ssl from pg_stat_ssl where pid = pg_backend_pid()'), [{ ssl: true }])
    await session.close()
  })
})
