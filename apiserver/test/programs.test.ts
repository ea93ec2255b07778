import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { verify } from '@node-rs/argon2'
import pg from 'pg'
import { ended } from '../../testkit/kubernetes/kubectl.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { programEnvironment } from '../../testkit/program-environment.ts'
import { apiServerConfig } from '../config/config.ts'

const program = (name: string): string => new URL(`../${name}.ts`, import.meta.url).pathname

/** Runs a program with these variables alone. */
const run = (name: string, env: Record<string, string>, ...args: string[]) =>
  ended('env', [
    '-i',
    ...Object.entries(env).map(([key, value]) => `${key}=${value}`),
    process.execPath,
    program(name),
    ...args,
  ])

describe('the programs beside the API server', function () {
  this.timeout(120_000)
  const databaseFor = async () => {
    const cluster = await testCluster()
    const database = await cluster.createDatabase({ owner: 'svc_owner' })
    return { owner: cluster.url(database, 'svc_owner'), serving: cluster.url(database, 'svc_api') }
  }
  const query = async <R extends object>(url: string, text: string): Promise<R[]> => {
    const client = new pg.Client(url)
    await client.connect()
    try {
      return (await client.query<R>(text)).rows
    } finally {
      await client.end()
    }
  }

  it('migrate brings a database up to date, and a second time changes nothing', async () => {
    const { owner } = await databaseFor()
    for (let n = 0; n < 2; n++) {
      const { code, stdout, stderr } = await run('migrate', { SERVICE_DATABASE_OWNER_URL: owner })
      assert.equal(code, 0, stderr)
      assert.match(stdout, /"msg":"The control-plane database is up to date"/)
    }
    const [row] = await query<{ there: boolean }>(owner, `select to_regclass('audit_events') is not null as there`)
    assert.equal(row?.there, true)
  })

  it('migrate says which setting is missing', async () => {
    const { code, stderr } = await run('migrate', {})
    assert.equal(code, 1)
    assert.equal(stderr, 'Cannot use SERVICE_DATABASE_OWNER_URL: it must be set\n')
  })

  it('new-user makes a user and prints its token alone on standard output, and later another token', async () => {
    const { owner, serving } = await databaseFor()
    await run('migrate', { SERVICE_DATABASE_OWNER_URL: owner })
    const environment = { SERVICE_DATABASE_URL: serving }
    const made = await run('new-user', environment, '--operator', 'ada@example.com')
    assert.equal(made.code, 0, made.stderr)
    assert.match(made.stdout, /^svc_pat_\S+\n$/)
    assert.match(made.stderr, /^Made user:usr_\w+ \(ada@example\.com\)/)
    const another = await run('new-user', environment, 'ada@example.com')
    assert.match(another.stderr, /^Another token for user:usr_/)
    assert.notEqual(another.stdout, made.stdout)
    const users = await query(serving, 'select email, is_operator as "isOperator" from users')
    assert.deepEqual(users, [{ email: 'ada@example.com', isOperator: true }])
  })

  it('disable-user shuts an account out and lets it in again, by its address or id', async () => {
    const { owner, serving } = await databaseFor()
    await run('migrate', { SERVICE_DATABASE_OWNER_URL: owner })
    const environment = { SERVICE_DATABASE_URL: serving }
    const { stderr } = await run('new-user', environment, 'ada@example.com')
    const subject = /user:usr_\w+/.exec(stderr)?.[0] ?? ''
    const isDisabled = async () =>
      (await query<{ disabled: boolean }>(serving, 'select disabled_at is not null as disabled from users'))[0]
        ?.disabled
    for (const [args, said, disabled] of [
      [['ada@example.com'], `${subject} (ada@example.com) is disabled; 0 sessions ended`, true],
      [[subject], `${subject} was disabled already`, true],
      [['--enable', subject], `${subject} is enabled; 0 sessions ended`, false],
    ] as const) {
      const { code, stdout, stderr: error } = await run('disable-user', environment, ...args)
      assert.deepEqual([code, stdout, error], [0, `${said}\n`, ''])
      assert.equal(await isDisabled(), disabled)
    }
    for (const [args, said] of [
      [['bob@example.com'], /^There is no account with this address or id\n$/],
      [[], /^usage: /],
      [['--enable'], /^usage: /],
    ] as const) {
      const { code, stdout, stderr: error } = await run('disable-user', environment, ...args)
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(error, said)
    }
  })

  it('hash-password makes of standard input a hash that is the configured administrator’s, and says what no password may be', async () => {
    const hashOf = (typed: string) =>
      new Promise<{ code: number; stdout: string; stderr: string }>(resolve => {
        const child = execFile(
          process.execPath,
          [program('hash-password')],
          { env: programEnvironment() },
          (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
        )
        child.stdin?.end(typed)
      })
    const { code, stdout, stderr } = await hashOf('seven wet stones at the pier\n')
    assert.deepEqual([code, stderr], [0, ''])
    const hash = stdout.trimEnd()
    assert.equal(await verify(hash, 'seven wet stones at the pier'), true)
    const settings = { SERVICE_ADMIN_EMAIL: 'root@example.com', SERVICE_ADMIN_PASSWORD_HASH: hash }
    assert.equal(apiServerConfig(settings).administrator.passwordHash, hash)
    for (const [typed, said] of [
      ['\n', /^usage: /],
      ['short', /^Cannot hash this password: it must have at least 12 characters\n$/],
    ] as const) {
      const refused = await hashOf(typed)
      assert.deepEqual([refused.code, refused.stdout], [1, ''])
      assert.match(refused.stderr, said)
    }
  })

  it('new-user refuses what is no address, and too little or too much', async () => {
    const { owner, serving } = await databaseFor()
    await run('migrate', { SERVICE_DATABASE_OWNER_URL: owner })
    for (const args of [['ada'], [], ['a@example.com', 'b@example.com'], ['--admin', 'a@example.com']]) {
      const { code, stdout, stderr } = await run('new-user', { SERVICE_DATABASE_URL: serving }, ...args)
      assert.equal(code, 1)
      assert.equal(stdout, '')
      assert.match(stderr, /ASCII mail address|^usage: |Unknown option '--admin'/)
    }
    assert.deepEqual(await query(serving, 'select from users'), [])
  })
})
