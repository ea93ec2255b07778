import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Registry } from 'prom-client'
import { keyOf, type ResourceType } from '../../lib/model/resource.ts'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { sized } from '../../testkit/full.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { rejectsWith, uidOf } from '../store/resource-store-fixture.contract.ts'
import { FINALIZER, newWidget, type Widget, widgets } from '../store/widget.contract.ts'
import { EmbeddedResourceStore, type EmbeddedStoreOptions } from './embedded-resource-store.ts'

describe('EmbeddedResourceStore', () => {
  let url: string
  let admin: pg.Client
  let store: EmbeddedResourceStore
  const opened: EmbeddedResourceStore[] = []
  const open = (options: Partial<EmbeddedStoreOptions> = {}): EmbeddedResourceStore => {
    const made = new EmbeddedResourceStore({ url, clientName: 'svc-test', pollEveryMs: 60_000, ...options })
    opened.push(made)
    return made
  }
  before(async () => {
    url = await storeDatabase()
    admin = new pg.Client({ connectionString: url, application_name: 'admin' })
    await admin.connect()
  })
  beforeEach(() => {
    store = open()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(one => one.close()))
    // As empty as a new database, which would take longer to make.
    await admin.query('truncate objects, changes; update compaction set through = (select last_value from versions)')
  })
  after(async () => admin.end())

  const create = (name: string, spec: Widget['spec'] = {}, finalizers: string[] = []): Promise<Widget> =>
    store.create(widgets, newWidget('ns', name, spec, { finalizers }))
  /** Made in the database, in one statement, behind every client's back. */
  const createInSql = async (prefix: string, count: number): Promise<void> => {
    await admin.query(
      `select create_object('widgets.contract.svc.internal', 'ns', $1 || n, gen_random_uuid(), '{}',
         '{"finalizers": [], "annotations": {}, "ownerReferences": [], "spec": {}}') from generate_series(1, $2) n`,
      [prefix, count],
    )
  }
  const follow = (from: string, client = store) => {
    const abort = new AbortController()
    const names: string[] = []
    const ended = (async () => {
      for await (const event of client.watch(widgets, { from, signal: abort.signal }))
        if (event.type !== 'bookmark') names.push(event.object.metadata.name)
    })()
    ended.catch(() => undefined)
    return { names, ended, abort, seen: (count: number) => until(() => names.length >= count) }
  }
  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await holds())) await sleep(10)
  }
  /** Connections to this database by application name. */
  const backends = async (like: string): Promise<number | null> => {
    const text = 'select 1 from pg_stat_activity where datname = current_database() and application_name like $1'
    return (await admin.query(text, [like])).rowCount
  }
  const head = async (): Promise<string> => (await store.list(widgets)).resourceVersion

  describe('lifecycle of objects', () => {
    it('lastManager names the client that asked for deletion', async () => {
      const made = await create('one', {}, [FINALIZER])
      await open({ clientName: 'kubectl' }).delete(widgets, keyOf(made), uidOf(made))
      assert.equal((await store.get(widgets, keyOf(made)))?.metadata.lastManager, 'kubectl')
    })

    it('an object older than a rule keeps its status and lets its finalizer go, but takes no new spec', async () => {
      const made = await create('old', { size: 7 }, [FINALIZER])
      const stricter: ResourceType<Widget> = {
        ...widgets,
        validate: next => ((next as Widget).spec.size === 7 ? [{ field: 'spec.size', message: 'not 7' }] : []),
      }
      await rejectsWith(store.patch(stricter, keyOf(made), { spec: { color: 'red' } }, uidOf(made)), 'Invalid')
      await store.patchStatus(stricter, keyOf(made), { phase: 'up' }, uidOf(made))
      await store.delete(stricter, keyOf(made), uidOf(made))
      await store.patch(stricter, keyOf(made), { metadata: { finalizers: [] } }, uidOf(made))
      assert.equal(await store.get(stricter, keyOf(made)), undefined)
    })

    it('a default that came later is written with the next spec patch and moves no generation by itself', async () => {
      const made = await create('old')
      const later: ResourceType<Widget> = {
        ...widgets,
        prune: spec => ({ size: 1, ...(widgets.prune(spec) as object) }),
      }
      const labelled = await store.patch(later, keyOf(made), { metadata: { labels: { a: 'b' } } }, uidOf(made))
      assert.deepEqual(labelled.spec, { color: 'grey' })
      const defaulted = await store.patch(later, keyOf(made), { spec: {} }, uidOf(made))
      assert.deepEqual([defaulted.spec, defaulted.metadata.generation], [{ color: 'grey', size: 1 }, 1])
      const patched = await store.patch(later, keyOf(made), { spec: { size: 2 } }, uidOf(made))
      assert.equal(patched.metadata.generation, 2)
    })

    it('refuses an object over 1 MiB, and keeps one right under it', async () => {
      const parts = (length: number): Widget['spec'] => ({ parts: ['x'.repeat(length)] })
      await rejectsWith(create('large', parts(1024 * 1024)), 'Invalid')
      const made = await create('fits', parts(1000 * 1024))
      assert.deepEqual(await store.get(widgets, keyOf(made)), made)
    })

    it('refuses to number changes outside of READ COMMITTED', async () => {
      await admin.query('begin isolation level repeatable read')
      await assert.rejects(admin.query('select next_version()'), /READ COMMITTED/)
      await admin.query('rollback')
    })
  })

  describe('the log', () => {
    it('is followed through many pages at once', async () => {
      const from = await head()
      await createInSql('w', 1700)
      const watch = follow(from)
      await watch.seen(1700)
      assert.deepEqual(
        watch.names,
        Array.from({ length: 1700 }, (_, n) => `w${n + 1}`),
      )
      watch.abort.abort()
    })

    it('keeps what is young and the newest versions, whatever their age', async () => {
      const from = await head()
      await createInSql('w', 100)
      assert.equal(await store.compact({ keepMs: 60_000, keepAtLeast: 0 }), 0)
      assert.equal(await store.compact({ keepMs: 0, keepAtLeast: 30 }), 70)
      assert.equal(await store.compact({ keepMs: 0, keepAtLeast: 30 }), 0)
      await rejectsWith(follow(from).ended, 'Gone')
      await rejectsWith(follow(String(BigInt(from) + 69n)).ended, 'Gone')
      const watch = follow(String(BigInt(from) + 70n))
      await watch.seen(30)
      watch.abort.abort()
    })

    it('a backlog is dropped in batches, each of which leaves the mark and the log in step', async () => {
      const from = BigInt(await head())
      await createInSql('w', 8)
      for (const [dropped, through] of [
        [3, 3n],
        [3, 6n],
        [1, 7n],
        [0, 7n],
      ] as const) {
        const { rows } = await admin.query(`select compact_changes('0', 1, 3)::int as dropped`)
        assert.deepEqual(rows, [{ dropped }])
        await rejectsWith(follow(String(from + through - 1n)).ended, 'Gone')
        const watch = follow(String(from + through))
        await watch.seen(8 - Number(through))
        watch.abort.abort()
      }
    })

    it('emptied by compaction, it still knows its newest version; a watch that is up to date goes on', async () => {
      await createInSql('w', 10)
      const from = await head()
      const watch = follow(from)
      await store.compact({ keepMs: 0, keepAtLeast: 0 })
      assert.equal(await head(), from)
      await create('next')
      await watch.seen(1)
      watch.abort.abort()
    })

    it('a watch of a kind that nothing happens to outlives compactions of what happens to others', async () => {
      const quiet: ResourceType<Widget> = { ...widgets, plural: 'gadgets', kind: 'Gadget' }
      const quick = open({ pollEveryMs: 20, bookmarkEveryMs: 20 })
      const abort = new AbortController()
      const stream = quick.watch(quiet, { from: await head(), signal: abort.signal })[Symbol.asyncIterator]()
      for (let round = 0; round < 3; round++) {
        await createInSql(`round-${round}-`, 5)
        const newest = await head()
        for (;;) {
          const { value } = await stream.next()
          assert.equal(value?.type, 'bookmark')
          if (value.type === 'bookmark' && value.resourceVersion === newest) break
        }
        await store.compact({ keepMs: 0, keepAtLeast: 0 })
      }
      abort.abort()
      assert.equal((await stream.next()).done, true)
    })

    it('is compacted by itself', async () => {
      await createInSql('w', 10)
      open({ compactEveryMs: 10, retention: { keepMs: 0, keepAtLeast: 2 } })
      await until(async () => (await admin.query('select 1 from changes')).rowCount === 2)
    })

    it('is Gone for a version that it never reached, as after a restore, and Invalid for what is no version', async () => {
      await create('one')
      await rejectsWith(follow(String(BigInt(await head()) + 1n)).ended, 'Gone')
      for (const from of ['', 'latest', '-1', '1e3', '9'.repeat(30)]) await rejectsWith(follow(from).ended, 'Invalid')
    })
  })

  describe('while the database is away', () => {
    const outage = async (away: boolean): Promise<void> => {
      const cluster = await testCluster()
      const root = new pg.Client({ connectionString: cluster.url('postgres') })
      await root.connect()
      const name = /\/(\w+)\?/.exec(url)![1]!
      await root.query(`alter database ${name} allow_connections ${String(!away)}`)
      if (away)
        await root.query(
          `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1 and application_name <> 'admin'`,
          [name],
        )
      await root.end()
    }

    it('every call is Unavailable, and works again afterwards', async () => {
      const made = await create('one')
      await outage(true)
      await rejectsWith(store.get(widgets, keyOf(made)), 'Unavailable')
      await rejectsWith(store.list(widgets), 'Unavailable')
      await rejectsWith(create('two'), 'Unavailable')
      await rejectsWith(store.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made)), 'Unavailable')
      await rejectsWith(store.patchStatus(widgets, keyOf(made), { phase: 'up' }, uidOf(made)), 'Unavailable')
      await rejectsWith(store.delete(widgets, keyOf(made), uidOf(made)), 'Unavailable')
      await outage(false)
      assert.deepEqual((await store.list(widgets)).items, [made])
    })

    it('a watch waits, and then tells what happened meanwhile, once', async () => {
      const watch = follow(await head())
      await create('before')
      await watch.seen(1)
      await outage(true)
      await createInSql('meanwhile-', 3)
      await sleep(150)
      await outage(false)
      await watch.seen(4)
      await until(() =>
        create('after').then(
          () => true,
          () => false,
        ),
      )
      await watch.seen(5)
      assert.deepEqual(watch.names, ['before', 'meanwhile-1', 'meanwhile-2', 'meanwhile-3', 'after'])
      watch.abort.abort()
      await watch.ended
    })

    it('a watch that is aborted meanwhile ends', async () => {
      const watch = follow(await head())
      await create('one')
      await watch.seen(1)
      await outage(true)
      watch.abort.abort()
      await watch.ended
      await outage(false)
    })
  })

  it('holds no more connections than it may, the listener’s aside', async () => {
    const bounded = open({ clientName: 'bounded', maxConnections: 2 })
    await Promise.all(Array.from({ length: 60 }, (_, n) => bounded.create(widgets, newWidget('ns', `b${n}`))))
    assert.equal(await backends('bounded'), 2)
    assert.equal((await store.list(widgets)).items.length, 60)
  })

  it('closing ends watches with Unavailable, also twice, and later calls are Unavailable', async () => {
    const watch = follow(await head())
    await create('one')
    await watch.seen(1)
    await Promise.all([store.close(), store.close()])
    await rejectsWith(watch.ended, 'Unavailable')
    await rejectsWith(store.list(widgets), 'Unavailable')
    await until(async () => (await backends('svc-test%')) === 0)
  })

  it('counts requests by outcome, events, watches, reconnects and compacted changes, for several clients of a registry', async () => {
    const registry = new Registry()
    const [ada, bob] = ['ada', 'bob'].map(clientName => open({ clientName, registry }))
    const watch = follow(await head(), ada)
    await bob!.create(widgets, newWidget('ns', 'one'))
    await rejectsWith(bob!.create(widgets, newWidget('ns', 'one')), 'AlreadyExists')
    await watch.seen(1)
    await until(async () => (await backends('ada listener')) === 1)
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'ada listener'`,
    )
    await createInSql('w', 5)
    await watch.seen(6)
    open({ clientName: 'compactor', registry, compactEveryMs: 10, retention: { keepMs: 0, keepAtLeast: 1 } })
    const sample = async (name: string, labels: Record<string, string>): Promise<number> => {
      const metric = (await registry.getMetricsAsJSON()).find(one => name.startsWith(one.name))
      const values = metric?.values as readonly {
        value: number
        labels: Record<string, unknown>
        metricName?: string
      }[]
      return values
        .filter(value => Object.entries(labels).every(([key, label]) => value.labels[key] === label))
        .filter(value => value.metricName === undefined || value.metricName === name)
        .reduce((sum, value) => sum + value.value, 0)
    }
    const count = 'svc_store_request_duration_seconds_count'
    assert.equal(await sample(count, { client: 'bob', operation: 'create', outcome: 'ok' }), 1)
    assert.equal(await sample(count, { client: 'bob', operation: 'create', outcome: 'AlreadyExists' }), 1)
    assert.equal(
      await sample('svc_store_watch_events_total', { client: 'ada', resource: 'widgets.contract.svc.internal' }),
      6,
    )
    assert.equal(await sample('svc_store_watches', { client: 'ada' }), 1)
    await until(async () => (await sample('svc_store_listener_reconnects_total', { client: 'ada' })) === 1)
    await until(async () => (await sample('svc_store_compacted_changes_total', {})) >= 5)
    watch.abort.abort()
    await watch.ended
    assert.equal(await sample('svc_store_watches', { client: 'ada' }), 0)
  })

  it('a server that no longer says a word is Unavailable after the deadline, for reads and writes, and closing does not hang', async function () {
    if (sized(0, 1) === 0) skipBecause(this, 'waits for deadlines of 12 s, so it is part of make verify')
    this.timeout(60_000)
    const frozen = open({ clientName: 'frozen', maxConnections: 2 })
    const made = await frozen.create(widgets, newWidget('ns', 'one'))
    await Promise.all([frozen.list(widgets), frozen.list(widgets)])
    const text = `select pid from pg_stat_activity where datname = current_database() and application_name = 'frozen'`
    const pids = (await admin.query<{ pid: number }>(text)).rows.map(row => row.pid)
    assert.equal(pids.length, 2)
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    try {
      await Promise.all([
        rejectsWith(frozen.get(widgets, keyOf(made)), 'Unavailable'),
        rejectsWith(frozen.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made)), 'Unavailable'),
      ])
      assert.deepEqual((await frozen.list(widgets)).items, [made])
      await frozen.close()
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
  })

  it('a row that somebody holds on to is TooManyRequests after its deadline, and others go on meanwhile', async function () {
    if (sized(0, 1) === 0) skipBecause(this, 'waits for a deadline of 5 s, so it is part of make verify')
    const made = await create('held')
    await admin.query('begin')
    await admin.query(`select from objects where name = 'held' for update`)
    const stuck = store.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
    stuck.catch(() => undefined)
    await create('other')
    await rejectsWith(stuck, 'TooManyRequests')
    await admin.query('rollback')
    await store.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
  })
})
