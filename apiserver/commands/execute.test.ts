import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import pg from 'pg'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { renameOrganization } from '../store/organizations.ts'
import type { Sql } from '../store/sql.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute, type Outcome } from './execute.ts'

describe('execute', () => {
  let world: CommandWorld
  let other: CommandDependencies
  let admin: pg.Client

  before(async () => {
    world = await commandWorld()
    other = world.secondProcess()
    admin = new pg.Client({ connectionString: world.plane.url('postgres') })
    await admin.connect()
    await admin.query('create table effects (key text, at timestamptz default clock_timestamp())')
    await admin.query('grant all on effects to svc_api')
  })
  after(async () => {
    await admin.end()
    await world.stop()
  })

  const effect = (sql: Sql, call: Call): Promise<unknown> =>
    sql.rows('insert into effects (key) values ($1)', [call.idempotencyKey])
  const effectsOf = async (key: string): Promise<number> =>
    (await admin.query<{ n: number }>('select count(*)::int as n from effects where key = $1', [key])).rows[0]!.n
  const eventsOf = async (key: string): Promise<number> =>
    (
      await admin.query<{ n: number }>(`select count(*)::int as n from audit_events where metadata ->> 'key' = $1`, [
        key,
      ])
    ).rows[0]!.n

  const event = (call: Call) =>
    callEvent(
      call,
      'put_organization',
      { organizationId: 'acme', resourceKind: 'organization', resourceId: 'acme' },
      { key: call.idempotencyKey },
    )
  /** Work with an effect, an event and an answer that no second run could give again. */
  const work =
    (call: Call) =>
    async (sql: Sql): Promise<Outcome<202, { id: string; name: string }>> => {
      await effect(sql, call)
      return { status: 202, body: { id: randomUUID(), name: 'Ümläut "quoted"' }, audit: [event(call)] }
    }
  const run = (deps: CommandDependencies, call: Call): Promise<Reply> => execute(deps, call, work(call))
  const bytes = (reply: Reply): string => (reply.body as Buffer).toString()

  it('runs once for sixteen parallel calls with one key through two processes, and answers all alike', async () => {
    for (let round = 0; round < sized(5, 50); round++) {
      const key = randomUUID()
      const replies = await Promise.all(
        Array.from({ length: 16 }, (_, n) => run(n % 2 === 0 ? world.deps : other, world.call(world.owner, { key }))),
      )
      assert.equal(new Set(replies.map(bytes)).size, 1)
      assert.equal(replies.filter(reply => reply.headers?.['Idempotency-Replayed'] === 'true').length, 15)
      assert.deepEqual([await effectsOf(key), await eventsOf(key)], [1, 1])
    }
  })

  it('runs once a key, for many keys retried in a storm, and leaves one event each', async () => {
    const keys: string[] = []
    const answers = new Map<string, Set<string>>()
    for (let wave = 0; wave < sized(1, 20); wave++) {
      const fresh: readonly string[] = Array.from({ length: 25 }, () => randomUUID())
      keys.push(...fresh)
      await Promise.all(
        fresh.flatMap(key =>
          [world.deps, other, world.deps].map(async deps => {
            const reply = await run(deps, world.call(world.owner, { key }))
            answers.set(key, (answers.get(key) ?? new Set()).add(bytes(reply)))
          }),
        ),
      )
    }
    for (const key of keys) assert.equal(answers.get(key)?.size, 1)
    const { rows } = await admin.query('select key from effects where key = any($1) group by key having count(*) = 1', [
      keys,
    ])
    assert.equal(rows.length, keys.length)
    const recorded = (await world.audit()).filter(({ metadata }) => keys.includes(String(metadata['key'])))
    assert.equal(recorded.length, keys.length)
  })

  it('refuses the key for other content, and keeps the first answer', async () => {
    const key = randomUUID()
    const first = await run(world.deps, world.call(world.owner, { key, body: { a: 1 } }))
    await assert.rejects(
      run(world.deps, world.call(world.owner, { key, body: { a: 2 } })),
      isCode('idempotency_key_reused'),
    )
    const again = await run(world.deps, world.call(world.owner, { key, body: { a: 1 } }))
    assert.equal(bytes(again), bytes(first))
    assert.equal(await effectsOf(key), 1)
  })

  it('keeps nothing by which what was asked for could be guessed', async () => {
    const body = { password: 'hunter2' }
    const keys = [randomUUID(), randomUUID()]
    for (const key of keys) await run(world.deps, world.call(world.owner, { key, body }))
    const { rows } = await admin.query<{ fingerprint: string }>(
      `select encode(fingerprint, 'hex') as fingerprint from idempotency_keys where key_hash = any($1)`,
      [keys.map(key => createHash('sha256').update(key).digest())],
    )
    const kept = rows.map(({ fingerprint }) => fingerprint)
    assert.equal(kept.length, 2)
    // Equal bodies do not look alike, and whoever guesses one cannot tell.
    assert.notEqual(kept[0], kept[1])
    const { contentHash } = world.call(world.owner, { body })
    assert.ok(!kept.includes(contentHash.toString('hex')))
    const other = { ...world.deps, contentKey: Buffer.alloc(32, 7) }
    await assert.rejects(run(other, world.call(world.owner, { key: keys[0]!, body })), isCode('idempotency_key_reused'))
  })

  it('tells callers, routes and path parameters apart under one key', async () => {
    const key = randomUUID()
    const stranger = await world.user('developer')
    await run(world.deps, world.call(world.owner, { key }))
    await run(world.deps, world.call(stranger, { key }))
    await run(world.deps, world.call(world.owner, { key, route: '/v1/other' }))
    await run(world.deps, world.call(world.owner, { key, pathParams: { org: 'acme' } }))
    assert.equal(await effectsOf(key), 4)
  })

  it('keeps a refusal with the request that met it, and nothing that was written before it', async () => {
    for (const code of ['environment_not_found', 'invalid_phase', 'quota_exceeded'] as const) {
      const key = randomUUID()
      const call = world.call(world.owner, { key })
      const refuse = async (sql: Sql): Promise<Outcome<200, undefined>> => {
        await effect(sql, call)
        throw new DomainError(code, `No: ${randomUUID()}`, { details: { phase: 'deleting' } })
      }
      let first: DomainError | undefined
      await assert.rejects(execute(world.deps, call, refuse), error => {
        first = error as DomainError
        assert.equal(first.replayOf, undefined)
        return isCode(code, { phase: 'deleting' })(error)
      })
      await assert.rejects(execute(other, world.call(world.owner, { key }), refuse), error => {
        const again = error as DomainError
        assert.equal(again.message, first?.message)
        assert.deepEqual(again.details, first?.details)
        assert.equal(again.replayOf, call.requestId)
        return isCode(code)(error)
      })
      assert.equal(await effectsOf(key), 0)
    }
  })

  it('keeps no refusal that the next attempt may not meet: rights, input, conflicts, outages', async () => {
    for (const code of ['forbidden', 'validation_failed', 'write_conflict', 'store_unavailable'] as const) {
      const key = randomUUID()
      const call = world.call(world.owner, { key })
      await assert.rejects(
        execute(world.deps, call, async () => {
          throw new DomainError(code, 'Not now')
        }),
        isCode(code),
      )
      assert.equal((await run(world.deps, call)).headers?.['Idempotency-Replayed'], undefined)
      assert.equal(await effectsOf(key), 1)
    }
  })

  it('answers idempotency_in_progress when the first call takes too long, and its answer afterwards', async () => {
    const hasty = world.secondProcess({ lockTimeoutMs: 50 })
    const key = randomUUID()
    const call = world.call(world.owner, { key })
    let release: () => void
    let entered: () => void
    const held = new Promise<void>(resolve => (release = resolve))
    const inside = new Promise<void>(resolve => (entered = resolve))
    const slow = execute(world.deps, call, async sql => {
      const outcome = await work(call)(sql)
      entered()
      await held
      return outcome
    })
    await inside
    await assert.rejects(run(hasty, call), isCode('idempotency_in_progress'))
    release!()
    assert.equal(bytes(await run(hasty, call)), bytes(await slow))
  })

  it('lets a waiting call become the first when the first fails', async () => {
    const key = randomUUID()
    const call = world.call(world.owner, { key })
    let second: Promise<Reply> | undefined
    await assert.rejects(
      execute(world.deps, call, async sql => {
        await effect(sql, call)
        second = run(other, call)
        await sql.rows('select pg_sleep(0.05)')
        throw new Error('A fault of ours')
      }),
      /A fault of ours/,
    )
    assert.equal((await second!).headers?.['Idempotency-Replayed'], undefined)
    assert.deepEqual([await effectsOf(key), await eventsOf(key)], [1, 1])
  })

  it('leaves nothing half done, and no key stuck, when its backend is killed before any statement or the COMMIT', async () => {
    // The statements of an undisturbed call are counted first, so that a new one joins by itself.
    const killAt = async (deps: CommandDependencies, call: Call, at: number): Promise<number> => {
      let steps = 0
      const step = async (sql: Sql): Promise<void> => {
        if (++steps !== at) return
        const pid = (await sql.row<{ pid: number }>('select pg_backend_pid() as pid'))!.pid
        await admin.query('select pg_terminate_backend($1, 5000)', [pid])
      }
      const database = {
        transaction: <T>(inner: (sql: Sql) => Promise<T>, close?: (sql: Sql, result: T) => Promise<unknown>[]) =>
          deps.database.transaction(async sql => {
            const rows: Sql['rows'] = async (text, values) => {
              await step(sql)
              return sql.rows(text, values)
            }
            const result = await inner({ rows, row: async (text, values) => (await rows<never>(text, values))[0] })
            await step(sql)
            return result
          }, close),
      } as unknown as CommandDependencies['database']
      await run({ ...deps, database }, call).catch(() => undefined)
      return steps
    }
    const undisturbed = await killAt(world.deps, world.call(world.owner), 0)
    assert.ok(undisturbed >= 3)
    const stubborn = world.secondProcess({ retryBudgetMs: 0 })
    for (let at = 1; at <= undisturbed; at++)
      for (const [deps, expected] of [
        [world.deps, 1], // tried again by itself
        // Told the caller, who tries again; but after a COMMIT without an answer the key is asked what became of it.
        [stubborn, at === undisturbed ? 1 : 0],
      ] as const) {
        const key = randomUUID()
        const call = world.call(world.owner, { key })
        await killAt(deps, call, at)
        assert.deepEqual([await effectsOf(key), await eventsOf(key)], [expected, expected], `step ${at}`)
        await run(other, call)
        assert.deepEqual([await effectsOf(key), await eventsOf(key)], [1, 1], `step ${at}, repeated`)
      }
  })

  describe('when the answer to COMMIT is lost although it happened', () => {
    let link: Awaited<ReturnType<typeof lossyLink>>
    let deps: CommandDependencies
    before(async () => {
      link = await lossyLink((await testCluster()).socketFolder)
      deps = world.secondProcess({ url: `postgres://svc_api@127.0.0.1:${link.port}/${world.plane.name}` })
    })
    after(() => link.stop())

    it('answers what was committed, without running the work again', async () => {
      for (let round = 0; round < sized(5, 50); round++) {
        const key = randomUUID()
        const call = world.call(world.owner, { key })
        link.loseNextCommit()
        const reply = await run(deps, call)
        assert.equal(link.lost, round + 1)
        assert.equal(reply.headers?.['Idempotency-Replayed'], undefined)
        assert.equal(bytes(await run(world.deps, call)), bytes(reply))
        assert.deepEqual([await effectsOf(key), await eventsOf(key)], [1, 1])
      }
    })

    it('says that the outcome is unknown when there is no key to tell', async () => {
      const keyed = world.call(world.owner)
      const call: Call = { ...keyed, idempotencyKey: undefined }
      link.loseNextCommit()
      await assert.rejects(
        execute(deps, call, async sql => {
          await sql.rows('insert into effects (key) values ($1)', [call.requestId])
          return { status: 200, body: undefined }
        }),
        { name: 'CommitUnknownError' },
      )
      assert.equal(await effectsOf(call.requestId), 1)
    })
  })

  it('forgets a key after a day, and then runs anew', async () => {
    const call = world.call(world.owner)
    const first = await run(world.deps, call)
    await admin.query(`update idempotency_keys set expires_at = now() - interval '1 second'`)
    const second = await run(world.deps, call)
    assert.notEqual(bodyOf(first), bodyOf(second))
    assert.notEqual(bytes(first), bytes(second))
    assert.equal(second.headers?.['Idempotency-Replayed'], undefined)
    assert.equal(bytes(await run(world.deps, call)), bytes(second))
  })

  it('answers 204 without a body, and again so', async () => {
    const call = world.call(world.owner)
    const nothing = async (sql: Sql): Promise<Outcome<204, undefined>> => {
      await renameOrganization(sql, 'acme', 'Acme')
      return { status: 204, body: undefined }
    }
    assert.deepEqual(await execute(world.deps, call, nothing), { status: 204 })
    assert.deepEqual(await execute(world.deps, call, nothing), {
      status: 204,
      headers: { 'Idempotency-Replayed': 'true' },
    })
  })
})
