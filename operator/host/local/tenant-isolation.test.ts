import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { bringUp, newRef, openTestHost, queryAs, TEST_CREDENTIALS } from '../../../testkit/local-host.ts'
import { testFolder } from '../../../testkit/server-files.ts'
import { applyPasswords } from '../apply-roles.ts'
import { asSuperuser } from '../superuser-session.ts'
import { hostFolders, instanceFolders } from './folders.ts'
import type { LocalHost } from './local-host.ts'

const PRIVILEGE = /42501|42704|0LP01/

/** What a tenant must not do; each row says why it would matter. */
const REFUSED: readonly (readonly [sql: string, code: RegExp, why: string])[] = [
  ['alter role app superuser', PRIVILEGE, 'all else would follow'],
  ['alter role app createrole', PRIVILEGE, 'roles are the control plane’s'],
  ['alter role app bypassrls', PRIVILEGE, 'attributes of its own role'],
  ['alter role app connection limit -1', PRIVILEGE, 'its size is what was paid for'],
  [`alter role svc_ops password 'x'`, PRIVILEGE, 'our way in'],
  ['alter role svc_ops set search_path = public', PRIVILEGE, 'our sessions would run its functions'],
  ['grant svc_ops to app', PRIVILEGE, 'our way in'],
  ['grant svc_app_owner to app', PRIVILEGE, 'the owner of the database'],
  ['grant pg_read_server_files to app', PRIVILEGE, 'files of the machine'],
  ['create role another login', PRIVILEGE, 'roles are the control plane’s'],
  ['create database another', PRIVILEGE, 'databases are the control plane’s'],
  ['drop database app', PRIVILEGE, 'only the control plane ends it'],
  [`alter database app set statement_timeout = '1ms'`, PRIVILEGE, 'would hold for our sessions'],
  ['alter database app connection limit 0', PRIVILEGE, 'would lock us out'],
  ['alter database app owner to app', PRIVILEGE, 'ownership of the database'],
  [`alter system set work_mem = '1GB'`, /42501|0A000/, 'settings of the server'],
  ['set role svc_ops', PRIVILEGE, 'our way in'],
  ['set session authorization postgres', PRIVILEGE, 'the superuser'],
  ['set session_replication_role = replica', PRIVILEGE, 'switches triggers off'],
  ['set temp_file_limit = -1', PRIVILEGE, 'fills the disk'],
  [`set log_statement = 'all'`, PRIVILEGE, 'fills the log'],
  [`set session_preload_libraries = 'x'`, PRIVILEGE, 'loads code'],
  [`load 'auto_explain'`, PRIVILEGE, 'loads code'],
  [`copy (select 1) to program 'id'`, PRIVILEGE, 'runs programs'],
  [`create table t0 (line text); copy t0 from program 'id'`, PRIVILEGE, 'runs programs'],
  [`copy (select 1) to '/tmp/svc-escape'`, PRIVILEGE, 'writes files'],
  [`create table t1 (line text); copy t1 from '/etc/passwd'`, PRIVILEGE, 'reads files'],
  [`select pg_read_file('/etc/passwd')`, PRIVILEGE, 'reads files'],
  [`select pg_read_binary_file('/etc/passwd')`, PRIVILEGE, 'reads files'],
  [`select pg_ls_dir('/')`, PRIVILEGE, 'reads folders'],
  [`select pg_stat_file('/etc/passwd')`, PRIVILEGE, 'reads folders'],
  [`select lo_import('/etc/passwd')`, PRIVILEGE, 'reads files'],
  [`select lo_export(lo_from_bytea(0, 'x'), '/tmp/svc-escape')`, PRIVILEGE, 'writes files'],
  ['select pg_reload_conf()', PRIVILEGE, 'the server'],
  ['select pg_rotate_logfile()', PRIVILEGE, 'the server'],
  ['select pg_switch_wal()', PRIVILEGE, 'the server'],
  ['checkpoint', PRIVILEGE, 'the server'],
  [`select pg_create_physical_replication_slot('x')`, PRIVILEGE, 'keeps WAL for ever'],
  [`select rolpassword from pg_authid`, PRIVILEGE, 'verifiers'],
  [`select * from pg_shadow`, PRIVILEGE, 'verifiers'],
  [
    `create event trigger e on ddl_command_start execute function pg_catalog.suppress_redundant_updates_trigger()`,
    /42501|42P17/,
    'runs in sessions of others',
  ],
  [`create tablespace t location '/tmp'`, PRIVILEGE, 'writes elsewhere'],
  [`create publication p for all tables`, PRIVILEGE, 'needs a superuser'],
  [`create subscription s connection 'host=127.0.0.1' publication p with (connect = false)`, PRIVILEGE, 'connects out'],
  ['create extension file_fdw', PRIVILEGE, 'reads files'],
  ['create extension postgres_fdw', PRIVILEGE, 'connects out'],
  ['create extension dblink', PRIVILEGE, 'connects out'],
  ['create extension adminpack', /42501|0A000|58P01/, 'writes files'],
  ['create function f() returns int language c as $$x$$, $$y$$', PRIVILEGE, 'loads code'],
  ['create function f() returns int language internal as $$int4in$$', PRIVILEGE, 'calls anything'],
  ['create access method m type index handler bthandler', PRIVILEGE, 'needs a superuser'],
  [`insert into pg_catalog.pg_class select * from pg_class limit 1`, PRIVILEGE, 'catalogues'],
  [`update pg_database set datallowconn = true`, PRIVILEGE, 'catalogues'],
]

describe('a tenant in its database', function () {
  this.timeout(60_000)
  const ref = newRef()
  let host: LocalHost
  let socketFolder: string
  let port: number
  const home = testFolder()

  before(async () => {
    host = await openTestHost(home)
    const { endpoint } = await bringUp(host, ref)
    port = endpoint!.port
    socketFolder = instanceFolders(hostFolders(home), ref).sockets
  })
  after(() => host.stopAll({ keepDatabases: false }))

  const connectAs = async (user: string, password: string, database: string, place = '127.0.0.1'): Promise<void> => {
    const client = new pg.Client({ host: place, port, user, password, database })
    client.on('error', () => undefined)
    await client.connect()
    await client.end()
  }
  const app = TEST_CREDENTIALS.app.password
  const ops = TEST_CREDENTIALS.ops.password

  it('is refused everything that reaches beyond it', async () => {
    const done: string[] = []
    for (const [sql, code, why] of REFUSED)
      await queryAs(host, ref, sql).then(
        () => done.push(`${sql} (${why})`),
        (error: unknown) => {
          if (!code.test((error as { code?: string }).code ?? '')) done.push(`${sql}: ${(error as Error).message}`)
        },
      )
    assert.deepEqual(done, [])
  })

  it('connects to no other database and as nobody else', async () => {
    for (const database of ['postgres', 'template1', 'template0'])
      await assert.rejects(connectAs('app', app, database), { code: /28000|42501|55000/ })
    await assert.rejects(connectAs('postgres', app, 'app'), { code: '28000' })
    await assert.rejects(connectAs('svc_app_owner', app, 'app'), { code: '28000' })
    await assert.rejects(connectAs('svc_ops', ops, 'postgres'), { code: '28000' })
    await assert.rejects(connectAs('app', 'wrong', 'app'), { code: '28P01' })
    await assert.rejects(connectAs('app', app, 'app', socketFolder), { code: '28000' })
  })

  it('owns schema public and may make schemas, trusted extensions and temporary tables', async () => {
    await queryAs(
      host,
      ref,
      'create table mine (id int primary key); create schema other; create table other.t (x int)',
    )
    await queryAs(host, ref, 'create extension pgcrypto; create extension citext; create temporary table t (x int)')
    const owned = await queryAs(
      host,
      ref,
      `select nspowner::regrole::text as owner from pg_namespace where nspname = 'public'`,
    )
    assert.deepEqual(owned, [{ owner: 'app' }])
  })

  it('shares the server with a control plane role that is a member of nothing and cannot see rows', async () => {
    await queryAs(host, ref, 'create table if not exists secret (x int)')
    const roles = await queryAs(
      host,
      ref,
      `select (select count(*)::int from pg_auth_members where member = 'svc_ops'::regrole) as memberships,
              rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as more
         from pg_roles where rolname = 'svc_ops'`,
      'ops',
    )
    assert.deepEqual(roles, [{ memberships: 0, more: false }])
    await assert.rejects(queryAs(host, ref, 'select * from public.secret', 'ops'), { code: '42501' })
    await assert.rejects(queryAs(host, ref, 'create table public.t9 (x int)', 'ops'), { code: '42501' })
    const usage = await queryAs(
      host,
      ref,
      `select pg_database_size('app') > 0 as sized, (select count(*)::int from pg_stat_activity where usename = 'app') as open`,
      'ops',
    )
    assert.deepEqual(usage, [{ sized: true, open: 0 }])
  })

  it('cannot change how our sessions run, nor what becomes of our passwords', async () => {
    // In one session: what it sets for its role would end its own next statement after a millisecond.
    const hostile = [
      'create function public.now() returns int language sql return 1',
      'alter role app set search_path = evil',
      'alter role app in database app set default_transaction_read_only = on',
      `alter role app password 'changed'`,
      `alter role app set statement_timeout = '1ms'`,
    ]
    await queryAs(host, ref, hostile.join(';'))
    assert.deepEqual(
      await queryAs(
        host,
        ref,
        `select current_setting('search_path') as path, current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock`,
        'ops',
      ),
      [{ path: 'pg_catalog, pg_temp', statement: '15s', lock: '3s' }],
    )
    const address = { socketFolder, port }
    const pinned = await asSuperuser(
      address,
      async client =>
        (
          await client.query<Record<string, string>>(
            `select current_setting('search_path') as path, current_setting('statement_timeout') as statement, current_user::text as who`,
          )
        ).rows,
    )
    assert.deepEqual(pinned, [{ path: 'pg_catalog,pg_temp', statement: '15s', who: 'postgres' }])
    await applyPasswords(address, TEST_CREDENTIALS)
    assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
  })

  it('cannot make its own sign-in prove false by what it sets for its role, nor by using up its connections', async () => {
    const hostile = [
      'default_transaction_read_only = on',
      `search_path = 'nowhere'`,
      `role = 'app'`,
      `statement_timeout = '1ms'`,
      `idle_session_timeout = '1ms'`,
      `transaction_timeout = '1ms'`,
      `client_encoding = 'SQL_ASCII'`,
      `default_tablespace = ''`,
      `row_security = off`,
      `local_preload_libraries = 'nowhere'`,
      `session_preload_libraries = 'nowhere'`,
    ]
    const address = { host: '127.0.0.1', port, user: 'app', password: app, database: 'app' }
    const options = '-c local_preload_libraries= -c statement_timeout=0 -c default_transaction_read_only=off'
    const session = new pg.Client({ ...address, options })
    session.on('error', () => undefined)
    await session.connect()
    const held: pg.Client[] = []
    try {
      const set: string[] = []
      for (const setting of hostile)
        await session.query(`alter role app set ${setting}`).then(
          () => set.push(setting),
          () => undefined,
        )
      assert.ok(set.length >= 8 && !set.some(setting => setting.startsWith('session_preload')), set.join('; '))
      assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
      await session.query('alter role app reset all; alter role app in database app reset all')
      for (let more = true; more; ) {
        const client = new pg.Client(address)
        client.on('error', () => undefined)
        more = await client.connect().then(
          () => true,
          () => false,
        )
        if (more) held.push(client)
        assert.ok(held.length < 100)
      }
      assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
      // Ours get in beside them.
      await applyPasswords({ socketFolder, port }, TEST_CREDENTIALS)
      await queryAs(host, ref, 'select 1', 'ops')
    } finally {
      await Promise.all([session, ...held].map(client => client.end()))
    }
  })

  it('leaves nothing of its statements and parameters in the log', async () => {
    const { log } = instanceFolders(hostFolders(home), ref)
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'app', password: app, database: 'app' })
    await client.connect()
    await assert.rejects(client.query(`select 1 / 0 as canary_statement`), { code: '22012' })
    await assert.rejects(client.query('select 1 / length($1)', ['']), { code: '22012' })
    await assert.rejects(client.query(`select 1 / (length($1) - 16)`, ['canary_parameter']), { code: '22012' })
    await client.end()
    const read = (): string =>
      readdirSync(log)
        .map(name => readFileSync(join(log, name), 'utf8'))
        .join('')
    // Postgres' collector writes when it gets to it.
    const deadline = Date.now() + 10_000
    while (read().match(/division by zero/g)?.length !== 3) {
      assert.ok(Date.now() < deadline, 'the errors do not come to the log')
      await sleep(10)
    }
    const text = read()
    assert.doesNotMatch(text, /canary/)
  })

  it('has its files and sockets closed to every other account of the machine', () => {
    const folders = instanceFolders(hostFolders(home), ref)
    const modes = [folders.data, folders.sockets, folders.log, folders.intentFile].map(
      path => statSync(path).mode & 0o077,
    )
    assert.deepEqual(modes, [0, 0, 0, 0])
    assert.equal(statSync(join(folders.root, 'pg_hba.conf')).mode & 0o027, 0)
  })
})
