import assert from 'node:assert/strict'
import pg from 'pg'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { eventually } from '../../testkit/dispatch-world.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { fencedTransactions, LeaseLostError } from './fenced-transactions.ts'
import { type HeldLease, LeaseKeeper, type LeaseKeeperOptions } from './lease-keeper.ts'
import { acquireLease, type LeaseSession, releaseLease, renewLease, sessionIdentity } from './leases.ts'

describe('a lease', () => {
  let controlPlane: ControlPlaneDatabase
  const closing: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    controlPlane = await controlPlaneDatabase()
    closing.push(() => controlPlane.database.stop())
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  const session = async (): Promise<LeaseSession & { client: pg.Client }> => {
    const client = new pg.Client({ connectionString: controlPlane.url('svc_api') })
    client.on('error', () => undefined)
    await client.connect()
    closing.push(() => client.end().catch(() => undefined))
    return { client, identity: await sessionIdentity(client) }
  }
  const claim = (holder: string, ttlMs = 60_000) => ({ name: 'work', holder, ttlMs })

  it('has one holder; each taking has a higher term; a released one is free', async () => {
    const [one, two] = [await session(), await session()]
    assert.equal(await acquireLease(one, claim('one')), '1')
    assert.equal(await acquireLease(two, claim('two')), undefined)
    assert.equal(await renewLease(one, claim('one'), '1'), true)
    await releaseLease(two, claim('two'), '7')
    assert.equal(await acquireLease(two, claim('two')), undefined, 'nobody releases what is not theirs')
    await releaseLease(one, claim('one'), '1')
    assert.equal(await acquireLease(two, claim('two')), '2')
    assert.equal(await renewLease(one, claim('one'), '1'), false)
  })

  it('is taken by exactly one of many who ask at once', async () => {
    const sessions = await Promise.all(Array.from({ length: 12 }, session))
    const terms = await Promise.all(sessions.map((one, index) => acquireLease(one, claim(`holder-${index}`))))
    assert.deepEqual(
      terms.filter(term => term !== undefined),
      ['1'],
    )
  })

  it('of a dead process is free at once, that of a silent one when its time is over', async () => {
    const [dead, silent, next] = [await session(), await session(), await session()]
    await acquireLease(dead, claim('dead'))
    await dead.client.end()
    assert.equal(
      await eventually(
        () => acquireLease(silent, claim('silent', 300)),
        term => term !== undefined,
        'taken over',
      ),
      '2',
    )
    assert.equal(await acquireLease(next, claim('next')), undefined)
    assert.equal(
      await eventually(
        () => acquireLease(next, claim('next')),
        term => term !== undefined,
        'taken over',
      ),
      '3',
    )
  })

  it('follows its holder to another session', async () => {
    const [first, second, other] = [await session(), await session(), await session()]
    await acquireLease(first, claim('one'))
    assert.equal(await renewLease(second, claim('one'), '1'), true)
    await first.client.end()
    assert.equal(await acquireLease(other, claim('other')), undefined)
  })

  it('is taken over only after the last transaction under it, and none follows', async () => {
    const { database } = controlPlane
    const [one, two] = [await session(), await session()]
    const term = await acquireLease(one, claim('one'))
    assert.ok(term)
    const fenced = fencedTransactions(database, { name: 'work', term })
    const order: string[] = []
    const begun = Promise.withResolvers<undefined>()
    const mayEnd = Promise.withResolvers<undefined>()
    const last = fenced(async sql => {
      begun.resolve(undefined)
      await mayEnd.promise
      await sql.rows(`insert into external_changes (uid, generation) values ('a', 1)`)
      order.push('last transaction')
    })
    await begun.promise
    // The time is over although the transaction is not.
    await two.client.query(`update leases set expires_at = '-infinity'`)
    const taken = acquireLease(two, claim('two')).then(next => order.push(`term ${next}`))
    await eventually(
      () =>
        database.rows(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`,
        ),
      waiting => waiting.length === 1,
      'waiting',
    )
    assert.equal(await renewLease(one, claim('one'), term).catch(() => 'waits'), true, 'renewing waits for nobody')
    mayEnd.resolve(undefined)
    await Promise.all([last, taken])
    assert.equal(order[0], 'last transaction')
    await releaseLease(one, claim('one'), term)
    await acquireLease(two, claim('two'))
    await assert.rejects(
      fenced(sql => sql.rows(`insert into external_changes (uid, generation) values ('b', 1)`)),
      LeaseLostError,
    )
    assert.deepEqual(await database.rows('select uid from external_changes'), [{ uid: 'a' }])
  })

  describe('a keeper', () => {
    const terms: string[] = []
    const held = new Map<string, HeldLease>()
    beforeEach(() => {
      terms.splice(0)
      held.clear()
    })

    const keeper = (name: string, options: Partial<LeaseKeeperOptions> = {}): LeaseKeeper => {
      const made = new LeaseKeeper({
        name: 'work',
        connectionString: controlPlane.url('svc_api'),
        log: silentLog,
        renewEveryMs: 50,
        standbyPollMs: 10_000,
        candidate: {
          elected: lease => {
            terms.push(`${name} begins`)
            held.set(name, lease)
          },
          ended: async () => void terms.push(`${name} ends`),
        },
        ...options,
      })
      made.start()
      closing.push(() => made.stop())
      return made
    }
    const seen = (expected: readonly string[]): Promise<unknown> =>
      eventually(
        async () => [...terms],
        now => now.length >= expected.length,
        expected.join(', '),
      ).then(now => assert.deepEqual(now, expected))

    it('hands over on stop, to one that polls rarely but hears of it', async () => {
      const one = keeper('one')
      await seen(['one begins'])
      keeper('two')
      await eventually(
        () =>
          controlPlane.database.rows(`select from pg_stat_activity where application_name = 'svc lease work'
            and datname = current_database() and state = 'idle' and query not like 'listen%'`),
        sessions => sessions.length === 2,
        'standing by',
      )
      await one.stop()
      await seen(['one begins', 'one ends', 'two begins'])
      assert.deepEqual([held.get('one')?.leads(), held.get('two')?.leads()], [false, true])
    })

    it('keeps its term over a database that goes away and comes back, and does not lead meanwhile', async () => {
      const cluster = await testCluster()
      keeper('one', { ttlMs: 400 })
      await seen(['one begins'])
      const admin = new pg.Client({ connectionString: cluster.url('postgres') })
      await admin.connect()
      closing.push(() => admin.end())
      await admin.query(`alter database ${controlPlane.name} with allow_connections false`)
      await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
        controlPlane.name,
      ])
      const lease = held.get('one')
      await eventually(
        async () => lease?.leads(),
        leads => leads === false,
        'not leading',
      )
      await admin.query(`alter database ${controlPlane.name} with allow_connections true`)
      await eventually(
        async () => lease?.leads(),
        leads => leads === true,
        'leading again',
      )
      assert.deepEqual(terms, ['one begins'])
    })

    it('that comes back to a lease with another holder ends its term', async () => {
      keeper('one', { standbyPollMs: 50 })
      await seen(['one begins'])
      await controlPlane.database.transaction(sql => sql.rows(`update leases set term = term + 1, holder = ''`))
      await seen(['one begins', 'one ends', 'one begins'])
      assert.equal(held.get('one')?.term, '3')
    })
  })
})
