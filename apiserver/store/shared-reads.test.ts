import assert from 'node:assert/strict'
import pg from 'pg'
import { isCode } from '../../testkit/assert-code.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { sized } from '../../testkit/full.ts'

describe('reads that share connections', () => {
  let plane: ControlPlaneDatabase
  let admin: pg.Client
  before(async () => {
    plane = await controlPlaneDatabase()
    admin = new pg.Client({ connectionString: plane.url('postgres') })
    await admin.connect()
  })
  after(async () => {
    await plane.database.stop()
    await admin.end()
  })

  const backends = async (): Promise<number[]> => {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and application_name = 'svc-apiserver'`,
    )
    return rows.map(row => row.pid)
  }
  const echo = async (n: number): Promise<number | undefined> =>
    (await plane.database.row<{ n: number }>('select $1::int as n', [n]))?.n

  it('each get their own rows, many at once over two connections', async () => {
    const n = sized(1000, 50_000)
    const numbers = Array.from({ length: n }, (_, index) => index)
    for (let at = 0; at < n; at += 500) {
      const slice = numbers.slice(at, at + 500)
      assert.deepEqual(await Promise.all(slice.map(echo)), slice)
    }
    assert.equal((await backends()).length, 2)
  })

  it('fail alone: what stands before and behind a failing one is answered', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, (_, n) =>
        n % 3 === 1 ? plane.database.rows('select 1 / ($1::int - 1)', [1]) : echo(n),
      ),
    )
    outcomes.forEach((outcome, n) => {
      assert.equal(outcome.status, n % 3 === 1 ? 'rejected' : 'fulfilled')
      if (outcome.status === 'fulfilled') assert.equal(outcome.value, n)
    })
  })

  it('a value that cannot be sent fails alone as well', async () => {
    const [bad, good] = await Promise.allSettled([plane.database.rows('select $1::int as n', ['x']), echo(7)])
    assert.equal(bad.status, 'rejected')
    assert.deepEqual(good, { status: 'fulfilled', value: 7 })
  })

  it('are sent again when their connections are killed under them', async () => {
    for (let round = 0; round < sized(3, 30); round++) {
      const reads = Array.from({ length: 100 }, (_, n) =>
        plane.database.row<{ n: number }>('select $1::int as n, pg_sleep(0.002)', [n]),
      )
      for (const pid of await backends()) await admin.query('select pg_terminate_backend($1)', [pid])
      const rows = await Promise.all(reads)
      assert.deepEqual(
        rows.map(row => row?.n),
        Array.from({ length: 100 }, (_, n) => n),
      )
    }
  })

  it('one at its deadline is told, and the others are answered', async () => {
    const hasty = plane.open({ statementTimeoutMs: 200, maxConnections: 4 })
    const slow = Array.from({ length: 2 }, () => hasty.rows('select pg_sleep(20)'))
    const quick = Array.from({ length: 20 }, (_, n) => hasty.row<{ n: number }>('select $1::int as n', [n]))
    const refused = Promise.all(slow.map(each => assert.rejects(each, isCode('database_unavailable'))))
    assert.deepEqual(
      (await Promise.all(quick)).map(row => row?.n),
      Array.from({ length: 20 }, (_, n) => n),
    )
    await refused
    await hasty.stop()
  })

  it('are answered before a stop is done', async () => {
    const ending = plane.open()
    const reads = Array.from({ length: 50 }, (_, n) => ending.row<{ n: number }>('select $1::int as n', [n]))
    await ending.row('select 1')
    await ending.stop()
    assert.equal((await Promise.all(reads)).length, 50)
  })

  it('are answered before a stop is done, where their connections were only being made, too', async () => {
    const ending = plane.open()
    const reads = Array.from({ length: 50 }, (_, n) => ending.row<{ n: number }>('select $1::int as n', [n]))
    const [rows] = await Promise.all([Promise.all(reads), ending.stop()])
    assert.deepEqual(
      rows.map(row => row?.n),
      Array.from({ length: 50 }, (_, n) => n),
    )
  })
})
