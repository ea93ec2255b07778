import assert from 'node:assert/strict'
import pg from 'pg'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { Database } from './database.ts'
import { CommitUnknownError } from './database-error.ts'
import { type Sql, together } from './sql.ts'

const isCode = (code: string) => (error: unknown) => error instanceof DomainError && error.code === code

describe('Database', () => {
  let plane: ControlPlaneDatabase
  let admin: pg.Client

  before(async () => {
    plane = await controlPlaneDatabase()
    admin = new pg.Client({ connectionString: plane.url('postgres') })
    await admin.connect()
    await admin.query('create table counted (id int primary key, n bigint not null default 0)')
    await admin.query('insert into counted values (1), (2)')
    await admin.query('grant all on counted to svc_api')
  })
  after(async () => {
    await plane.database.stop()
    await admin.end()
  })

  const backend = async (sql: Sql): Promise<number> =>
    (await sql.row<{ pid: number }>('select pg_backend_pid() as pid'))!.pid
  const kill = async (pid: number): Promise<void> => {
    await admin.query('select pg_terminate_backend($1, 5000)', [pid])
  }
  const count = async (id = 1): Promise<number> =>
    (await plane.database.row<{ n: number }>('select n from counted where id = $1', [id]))!.n
  const add = (sql: Sql, id = 1): Promise<readonly unknown[]> =>
    sql.rows('update counted set n = n + 1 where id = $1', [id])

  it('lets a transaction last longer than the longest statement that it may hold', async () => {
    const limits = `select current_setting('statement_timeout')::interval < current_setting('transaction_timeout')::interval as room,
      current_setting('idle_in_transaction_session_timeout') as idle`
    for (const statementTimeoutMs of [1_000, 10_000, 15_000, 60_000]) {
      const database = plane.open({ statementTimeoutMs })
      assert.deepEqual(await database.transaction(sql => sql.row(limits)), { room: true, idle: '15s' })
      await database.stop()
    }
  })

  it('rolls back when the work throws, and throws the same', async () => {
    const before = await count()
    const fault = new DomainError('invalid_phase', 'No')
    await assert.rejects(
      plane.database.transaction(async sql => {
        await add(sql)
        throw fault
      }),
      error => error === fault,
    )
    assert.equal(await count(), before)
  })

  it('does not call a transaction committed whose error was swallowed', async () => {
    const before = await count()
    await assert.rejects(
      plane.database.transaction(async sql => {
        await add(sql)
        await sql.rows('select 1/0').catch(() => undefined)
      }),
      /swallowed/,
    )
    assert.equal(await count(), before)
  })

  it('rolls everything back when a statement fails that travels with the COMMIT, and says which', async () => {
    const before = await count()
    await assert.rejects(
      plane.database.transaction(
        async sql => {
          await add(sql)
        },
        sql => [add(sql), sql.rows('insert into counted values (1)'), add(sql)],
      ),
      isCode('write_conflict'),
    )
    assert.equal(await count(), before)
    await plane.database.transaction(
      async sql => {
        await add(sql)
      },
      sql => [add(sql), add(sql)],
    )
    assert.equal(await count(), before + 3)
  })

  it('throws what the first of several statements threw that were sent together', async () => {
    await assert.rejects(
      plane.database.transaction(sql =>
        together(add(sql), sql.rows('insert into counted values (1)'), add(sql), sql.rows('select 1/0')),
      ),
      isCode('write_conflict'),
    )
  })

  it('runs the work again, once to the end, when its backend was killed before the commit', async () => {
    const before = await count()
    let runs = 0
    await plane.database.transaction(async sql => {
      await add(sql)
      if (++runs === 1) await kill(await backend(sql))
      await add(sql)
    })
    assert.equal(runs, 2)
    assert.equal(await count(), before + 2)
  })

  it('reads again when the connection was killed while idle', async () => {
    await kill(await backend(plane.database))
    assert.equal(await count(2), 0)
  })

  it('runs both transactions of a deadlock to the end', async () => {
    const before = [await count(1), await count(2)]
    let arrived = 0
    let bothHere: () => void
    const meeting = new Promise<void>(resolve => (bothHere = resolve))
    const crossing = (first: number, second: number): Promise<void> =>
      plane.database.transaction(async sql => {
        await add(sql, first)
        if (++arrived === 2) bothHere()
        await meeting
        await add(sql, second)
      })
    await Promise.all([crossing(1, 2), crossing(2, 1)])
    assert.deepEqual([await count(1), await count(2)], [before[0]! + 2, before[1]! + 2])
  })

  it('never runs the work again when the answer to the commit was lost', async () => {
    // A deferred constraint trigger runs inside COMMIT: there the backend ends itself, so that no answer comes.
    await admin.query(`create table doomed (id int);
      grant all on doomed to svc_api;
      create function end_myself() returns trigger language plpgsql security definer as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create constraint trigger doomed_commit after insert on doomed deferrable initially deferred
        for each row execute function end_myself()`)
    let runs = 0
    await assert.rejects(
      plane.database.transaction(async sql => {
        runs++
        await sql.rows('insert into doomed values (1)')
      }),
      CommitUnknownError,
    )
    assert.equal(runs, 1)
  })

  it('answers database_unavailable with a Retry-After while nobody listens', async () => {
    const away = new Database({ url: 'postgres://svc_api@127.0.0.1:1/svc', log: silentLog, retryBudgetMs: 50 })
    await assert.rejects(
      away.rows('select 1'),
      error => isCode('database_unavailable')(error) && (error as DomainError).retryAfterSeconds === 1,
    )
    await assert.rejects(
      away.transaction(async () => 1),
      isCode('database_unavailable'),
    )
    await away.stop()
  })

  it('answers database_unavailable when no connection becomes free in time', async () => {
    const narrow = plane.open({ maxConnections: 1, connectTimeoutMs: 50 })
    let release: () => void
    const held = new Promise<void>(resolve => (release = resolve))
    const holder = narrow.transaction(() => held)
    await assert.rejects(
      narrow.transaction(sql => sql.rows('select 1')),
      isCode('database_unavailable'),
    )
    assert.equal((await narrow.rows('select 1')).length, 1, 'reads do not wait for transactions')
    release!()
    await holder
    assert.equal((await narrow.rows('select 1')).length, 1)
    await narrow.stop()
  })

  it('never hangs on a network that falls silent: not in a statement, at a COMMIT, or on the way to a connection', async () => {
    for (const silentAt of ['connect', 'statement', 'commit'] as const) {
      const link = await lossyLink((await testCluster()).socketFolder)
      const database = plane.open({
        url: `postgres://svc_api@127.0.0.1:${link.port}/${plane.name}`,
        connectTimeoutMs: 200,
        statementTimeoutMs: 100,
      })
      if (silentAt === 'connect') link.fallSilent()
      await assert.rejects(
        database.transaction(async sql => {
          if (silentAt === 'statement') link.fallSilent()
          await add(sql)
          if (silentAt === 'commit') link.fallSilent()
        }),
        silentAt === 'commit' ? CommitUnknownError : isCode('database_unavailable'),
      )
      link.stop()
      await database.stop()
    }
  })

  it('answers database_unavailable to all who wait for a connection when it is stopped, and to all who come later', async () => {
    const link = await lossyLink((await testCluster()).socketFolder)
    link.fallSilent()
    const url = `postgres://svc_api@127.0.0.1:${link.port}/${plane.name}`
    const database = plane.open({ url, connectTimeoutMs: 200 })
    const asked = [database.rows('select 1'), database.transaction(add)]
    const refused = asked.map(each => assert.rejects(each, isCode('database_unavailable')))
    await database.stop()
    await Promise.all(refused)
    await assert.rejects(database.rows('select 1'), isCode('database_unavailable'))
    await assert.rejects(database.transaction(add), isCode('database_unavailable'))
    link.stop()
  })

  it('gives up on a statement at its deadline', async () => {
    const hasty = plane.open({ statementTimeoutMs: 50 })
    await assert.rejects(hasty.rows('select pg_sleep(30)'), isCode('database_unavailable'))
    await hasty.stop()
  })

  it('answers validation_failed for values that Postgres cannot hold', async () => {
    await assert.rejects(plane.database.rows('select $1::text', ['\u0000']), isCode('validation_failed'))
    await assert.rejects(plane.database.rows('select $1::int', ['99999999999']), isCode('validation_failed'))
    await assert.rejects(plane.database.rows('select $1::jsonb', ['{"a":"\\u0000"}']), isCode('validation_failed'))
  })

  it('answers write_conflict for a unique violation that no command foresaw', async () => {
    await assert.rejects(
      plane.database.transaction(sql => sql.rows('insert into counted values (1)')),
      isCode('write_conflict'),
    )
  })

  it('refuses a bigint that no number holds instead of rounding it', async () => {
    assert.deepEqual(await plane.database.rows('select 9007199254740991::bigint as n'), [{ n: 9007199254740991 }])
    await assert.rejects(plane.database.rows('select 9007199254740993::bigint as n'), RangeError)
  })
})
