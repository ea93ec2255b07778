import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { sized } from '../../testkit/full.ts'
import { ManualClock, settle } from '../../testkit/manual-clock.ts'
import { type Thing, thing } from '../../testkit/unreliable-store.ts'
import { type Log, silentLog } from '../log/log.ts'
import { StoreError } from '../store/store-error.ts'
import { Cache } from './cache.ts'
import { Controller, type ControllerOptions, type Reconcile } from './controller.ts'
import { controlMetrics } from './metrics.ts'
import { generationChanged } from './predicates.ts'
import { TerminalError } from './terminal-error.ts'

const key = (name: string) => ({ namespace: 'n', name })

interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

const recordingLog = (lines: LogLine[], bound: Readonly<Record<string, unknown>> = {}): Log => {
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push({ level, message, fields: { ...bound, ...fields } })
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: fields => recordingLog(lines, { ...bound, ...fields }),
  }
}

/** A started controller on a standing clock. */
const setUp = (reconcile: Reconcile, options: Partial<ControllerOptions> = {}) => {
  const clock = new ManualClock()
  const registry = new Registry()
  const lines: LogLine[] = []
  const controller = new Controller({
    name: 'things',
    reconcile,
    log: recordingLog(lines),
    clock,
    random: () => 1,
    metrics: controlMetrics(registry),
    ...options,
  })
  controller.start()
  /** The samples of a metric, as `label="value",… value`. */
  const metric = async (name: string): Promise<Record<string, number>> => {
    const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {}
    return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
  }
  return { clock, controller, lines, metric }
}

describe('Controller', () => {
  it('reconciles a key once more for many wishes while it runs, and then rests', async () => {
    const seen: string[] = []
    const { clock, controller, metric } = setUp(async ({ namespace, name }) => {
      seen.push(`${namespace}/${name}`)
    })
    for (const name of ['a', 'b', 'a', 'a']) controller.enqueue(key(name))
    await clock.advance(3_600_000)
    assert.deepEqual(seen, ['n/a', 'n/b', 'n/a'])
    assert.equal((await metric('controller_runtime_reconcile_total'))['things success'], 3)
    assert.equal(await controller.stop(), true)
  })

  it('looks again after requeueAfterMs, however often', async () => {
    const at: number[] = []
    const { clock, controller, metric } = setUp(async () => {
      at.push(clock.now())
      return { requeueAfterMs: 1000 }
    })
    controller.enqueue(key('a'))
    await clock.advance(3500)
    assert.deepEqual(at, [0, 1000, 2000, 3000])
    assert.equal((await metric('controller_runtime_reconcile_total'))['things requeue_after'], 4)
    await controller.stop()
    assert.equal(clock.pending, 0)
  })

  it('retries what fails with growing waits, and forgets them after a success', async () => {
    const at: number[] = []
    const { clock, controller, lines, metric } = setUp(async () => {
      at.push(clock.now())
      if (at.length !== 4) throw new Error('boom')
    })
    controller.enqueue(key('a'))
    await clock.advance(100)
    assert.deepEqual(at, [0, 5, 15, 35])
    controller.enqueue(key('a'))
    await clock.advance(6)
    assert.deepEqual(at.slice(4), [100, 105])
    assert.equal((await metric('controller_runtime_reconcile_errors_total'))['things'], 5)
    assert.equal((await metric('workqueue_retries_total'))['things things'], 5)
    const [line] = lines
    assert.equal(line?.level, 'warn')
    assert.deepEqual([line.fields['controller'], line.fields['namespace'], line.fields['name']], ['things', 'n', 'a'])
    assert.match(String(line.fields['reconcileId']), /^[0-9a-f-]{36}$/)
    await controller.stop()
  })

  it('retries a write conflict like an error, but says nothing of it', async () => {
    let runs = 0
    const { clock, controller, lines, metric } = setUp(async () => {
      runs += 1
      if (runs < 3) throw new StoreError('Conflict', 'a newer version exists')
    })
    controller.enqueue(key('a'))
    await clock.advance(100)
    assert.equal(runs, 3)
    assert.deepEqual(new Set(lines.map(({ level }) => level)), new Set(['debug']))
    assert.equal((await metric('controller_runtime_reconcile_errors_total'))['things'], 0)
    assert.equal((await metric('controller_runtime_reconcile_total'))['things requeue'], 2)
    await controller.stop()
  })

  it('does not retry a TerminalError until something changes', async () => {
    let runs = 0
    const { clock, controller, metric } = setUp(async () => {
      runs += 1
      throw new TerminalError('never')
    })
    controller.enqueue(key('a'))
    await clock.advance(3_600_000)
    assert.equal(runs, 1)
    controller.enqueue(key('a'))
    await clock.advance(1)
    assert.equal(runs, 2)
    assert.equal((await metric('controller_runtime_terminal_reconcile_errors_total'))['things'], 2)
    assert.equal((await metric('controller_runtime_reconcile_total'))['things error'], 2)
    await controller.stop()
  })

  it('outlives reconciles that throw at once, throw nonsense, or ask for nonsense', async () => {
    const bad: Reconcile[] = [
      () => {
        throw new Error('not even a promise')
      },
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- somebody's library will
      () => Promise.reject(undefined),
      async () => ({ requeueAfterMs: Number.NaN }),
    ]
    for (const first of bad) {
      let runs = 0
      const { clock, controller } = setUp(async (name, context) => {
        runs += 1
        return runs === 1 ? first(name, context) : undefined
      })
      controller.enqueue(key('a'))
      await clock.advance(100)
      assert.equal(runs, 2)
      await controller.stop()
    }
  })

  it('never runs one key twice at once and never more reconciles than allowed', async () => {
    const step = fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), ms: fc.nat(30) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 80, size: 'max' }),
        fc.infiniteStream(fc.nat(40)),
        async (steps, durations) => {
          const running = new Set<string>()
          const wishes = new Map<string, number>()
          const starts = new Map<string, number>()
          let most = 0
          let started = 0
          const { clock, controller } = setUp(
            async ({ name }) => {
              assert.ok(!running.has(name))
              starts.set(name, ++started)
              running.add(name)
              most = Math.max(most, running.size)
              const lasts = durations.next().value ?? 0
              await new Promise<void>(resolve => clock.after(lasts, resolve))
              running.delete(name)
              if (lasts % 5 === 0) throw new Error('boom')
              if (lasts % 7 === 0) return { requeueAfterMs: lasts }
              return undefined
            },
            { concurrency: 3 },
          )
          for (const { name, ms } of steps) {
            wishes.set(name, started)
            controller.enqueue(key(name))
            await clock.advance(ms)
          }
          await clock.advance(5_000)
          assert.ok(most <= 3)
          // Each wish is followed by a start.
          for (const [name, before] of wishes) assert.ok((starts.get(name) ?? 0) > before, name)
          // A shrinking run must not leave anything behind.
          const stopped = controller.stop()
          await clock.advance(100)
          assert.equal(await stopped, true)
          assert.equal(running.size, 0)
        },
      ),
      { numRuns: sized(30, 1_000) },
    )
  }).timeout(180_000)

  describe('at the deadline', () => {
    it('aborts the signal with a reason and retries', async () => {
      const reasons: string[] = []
      const { clock, controller, metric } = setUp(
        (_, { signal, deadline }) => {
          assert.equal(deadline - clock.now(), 60_000)
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              const reason = signal.reason as Error
              reasons.push(reason.message)
              reject(reason)
            })
          })
        },
        { concurrency: 1 },
      )
      controller.enqueue(key('a'))
      await clock.advance(60_000)
      assert.deepEqual(reasons, ['Cannot finish reconciling n/a within 60000 ms'])
      assert.equal((await metric('controller_runtime_reconcile_timeouts_total'))['things'], 1)
      await clock.advance(5)
      assert.equal((await metric('controller_runtime_active_workers'))['things'], 1, 'the second try runs')
      await controller.stop()
    })

    it('lets other keys go on although a reconcile ignores its signal, and keeps that key locked', async () => {
      const seen: string[] = []
      const hang = Promise.withResolvers<undefined>()
      const { clock, controller, lines, metric } = setUp(
        async ({ name }) => {
          seen.push(name)
          if (name === 'hung' && seen.length === 1) await hang.promise
        },
        { concurrency: 1, deadlineMs: 1000 },
      )
      controller.enqueue(key('hung'))
      await settle()
      controller.enqueue(key('other'))
      controller.enqueue(key('hung'))
      await clock.advance(5_900)
      assert.deepEqual(seen, ['hung'])
      await clock.advance(200)
      assert.deepEqual(seen, ['hung', 'other'])
      assert.ok(lines.some(({ level, fields }) => level === 'error' && fields['name'] === 'hung'))
      assert.equal((await metric('workqueue_longest_running_processor_seconds'))['things things'], 6.1)
      hang.resolve(undefined)
      await clock.advance(1)
      assert.deepEqual(seen, ['hung', 'other', 'hung'], 'the wish made meanwhile is honoured')
      await controller.stop()
    })
  })

  describe('stop', () => {
    it('aborts what runs, waits for it, and takes nothing more', async () => {
      const seen: string[] = []
      let ended = false
      const { clock, controller } = setUp(
        async ({ name }, { signal }) => {
          seen.push(name)
          await new Promise<void>(resolve => {
            signal.addEventListener('abort', () => clock.after(3_000, resolve))
          })
          ended = true
        },
        { concurrency: 1 },
      )
      controller.enqueue(key('a'))
      controller.enqueue(key('b'))
      await settle()
      const stopping = controller.stop(8_000)
      await clock.advance(3_000)
      assert.equal(await stopping, true)
      assert.equal(ended, true)
      assert.deepEqual(seen, ['a'])
      controller.enqueue(key('c'))
      await clock.advance(100)
      assert.deepEqual(seen, ['a'])
    })

    it('does not wait for ever', async () => {
      const { clock, controller } = setUp(() => new Promise(() => undefined))
      controller.enqueue(key('a'))
      await settle()
      const stopping = controller.stop(8_000)
      await clock.advance(8_000)
      assert.equal(await stopping, false)
    })
  })

  describe('watch', () => {
    const watching = (reconcile: Reconcile) => {
      const cache = new Cache<Thing>({ log: silentLog })
      const made = setUp(reconcile, { concurrency: 1 })
      return { cache, ...made }
    }

    it('enqueues what the predicate lets through, and nothing for a change of status alone', async () => {
      const seen: string[] = []
      const { cache, clock, controller } = watching(async ({ name }) => {
        seen.push(name)
      })
      controller.watch(cache, { predicate: generationChanged })
      cache.replace([thing('a', 1, 1), thing('b', 2, 1)])
      await clock.advance(0)
      cache.apply('modified', thing('a', 3, 1))
      cache.apply('modified', thing('b', 4, 2))
      cache.apply('added', thing('c', 5, 1))
      cache.apply('deleted', thing('a', 6, 1))
      await clock.advance(0)
      assert.deepEqual(seen, ['a', 'b', 'b', 'c', 'a'])
      await controller.stop()
    })

    it('maps an event to other keys, for what hangs on other resources', async () => {
      const seen: string[] = []
      const { cache, clock, controller } = watching(async ({ name }) => {
        seen.push(name)
      })
      controller.watch(cache, { keys: ({ object }) => [key(`owner-of-${object.metadata.name}`)] })
      cache.replace([thing('a', 1)])
      await clock.advance(0)
      assert.deepEqual(seen, ['owner-of-a'])
      await controller.stop()
    })

    it("serves a user's change before the backlog of a first list", async () => {
      const seen: string[] = []
      const { cache, clock, controller } = watching(async ({ name }) => {
        seen.push(name)
        await new Promise<void>(resolve => clock.after(1, resolve))
      })
      controller.watch(cache)
      cache.replace(Array.from({ length: 100 }, (_, index) => thing(`backlog-${index}`, index)))
      await clock.advance(10)
      cache.apply('modified', thing('backlog-99', 200, 5))
      cache.apply('added', thing('new', 201, 1))
      await clock.advance(500)
      assert.deepEqual(seen.slice(11, 13), ['backlog-99', 'new'])
      assert.equal(seen.length, 101)
      await controller.stop()
    })
  })
})
