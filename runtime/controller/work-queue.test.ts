import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { ManualClock, settle } from '../../testkit/manual-clock.ts'
import { PRIORITY, type WorkItem, WorkQueue } from './work-queue.ts'

const queueOn = (clock: ManualClock, random = (): number => 0.999999): WorkQueue => new WorkQueue({ clock, random })

/** The keys that can be had right now, in order, each done at once. */
const drain = async (queue: WorkQueue): Promise<string[]> => {
  const keys: string[] = []
  while ([...queue.depths().values()].some(depth => depth > 0)) {
    const item = await queue.get()
    keys.push(item!.key)
    queue.done(item!.key)
  }
  return keys
}

describe('WorkQueue', () => {
  it('hands out keys in the order they came', async () => {
    const queue = queueOn(new ManualClock())
    for (const key of ['a', 'b', 'c']) queue.add(key)
    assert.deepEqual(await drain(queue), ['a', 'b', 'c'])
  })

  it('keeps a key once, however often it is added', async () => {
    const queue = queueOn(new ManualClock())
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    assert.deepEqual(await drain(queue), ['a', 'b'])
  })

  it('serves higher priorities first and keeps the highest that a key was given', async () => {
    const queue = queueOn(new ManualClock())
    queue.add('resync', PRIORITY.resync)
    queue.add('event', PRIORITY.event)
    queue.add('raised', PRIORITY.resync)
    queue.add('user', PRIORITY.user)
    queue.add('raised', PRIORITY.user)
    queue.add('user', PRIORITY.resync)
    assert.deepEqual(await drain(queue), ['user', 'raised', 'event', 'resync'])
  })

  it('gives a key that is added while it is processed once more, only after its worker is done', async () => {
    const queue = queueOn(new ManualClock())
    queue.add('a')
    assert.equal((await queue.get())?.key, 'a')
    queue.add('a')
    queue.add('a')
    let second: WorkItem | undefined
    void queue.get().then(item => (second = item))
    await settle()
    assert.equal(second, undefined)
    queue.done('a')
    await settle()
    assert.equal(second!.key, 'a')
    queue.done('a')
    assert.deepEqual(await drain(queue), [])
  })

  it('gives a delayed key after its time, at the earliest of the times it was given', async () => {
    const clock = new ManualClock()
    const queue = queueOn(clock)
    queue.addAfter('late', 300)
    queue.addAfter('a', 200)
    queue.addAfter('a', 100)
    queue.addAfter('a', 500)
    clock.advanceNow(99)
    assert.deepEqual(await drain(queue), [])
    clock.advanceNow(1)
    assert.deepEqual(await drain(queue), ['a'])
    clock.advanceNow(1000)
    assert.deepEqual(await drain(queue), ['late'])
  })

  it('still honours a delay when the key was looked at meanwhile', async () => {
    const clock = new ManualClock()
    const queue = queueOn(clock)
    queue.addAfter('a', 100)
    queue.add('a')
    assert.deepEqual(await drain(queue), ['a'])
    clock.advanceNow(100)
    assert.deepEqual(await drain(queue), ['a'])
  })

  it('waits for days without firing early, past what one timer can hold', async () => {
    const clock = new ManualClock()
    const queue = queueOn(clock)
    queue.addAfter('never', Number.POSITIVE_INFINITY)
    queue.addAfter('a', 2 ** 33)
    clock.advanceNow(2 ** 33 - 1)
    assert.deepEqual(await drain(queue), [])
    clock.advanceNow(1)
    assert.deepEqual(await drain(queue), ['a'])
  })

  it('doubles the wait of a failing key from 5 ms to 60 s, and starts again after forget', () => {
    const clock = new ManualClock()
    const waits: number[] = []
    const queue = queueOn(clock)
    for (let failure = 0; failure < 16; failure += 1) {
      queue.addRateLimited('a')
      const before = clock.now()
      while (queue.delayedCount > 0) clock.advanceNow(1)
      waits.push(clock.now() - before)
    }
    assert.deepEqual(waits.slice(0, 5), [5, 10, 20, 40, 80])
    assert.deepEqual(waits.slice(13), [40_960, 60_000, 60_000])
    queue.forget('a')
    assert.equal(queue.failures('a'), 0)
    queue.addRateLimited('a')
    clock.advanceNow(5)
    assert.equal(queue.delayedCount, 0)
  })

  it('spreads retries over the whole wait', () => {
    const clock = new ManualClock()
    const queue = queueOn(clock, () => 0.5)
    for (let failure = 0; failure < 11; failure += 1) queue.addRateLimited('a')
    const one = queueOn(clock, () => 0)
    one.addRateLimited('a')
    assert.equal(one.delayedCount, 0, 'no wait at all is within the jitter')
    queue.shutDown()
    const other = queueOn(clock, () => 0.5)
    other.addRateLimited('b')
    clock.advanceNow(2.4)
    assert.equal(other.delayedCount, 1)
    clock.advanceNow(0.1)
    assert.equal(other.delayedCount, 0)
  })

  describe('shutDown', () => {
    it('hands out what is ready, drops what is delayed, refuses what comes, then lets the workers go', async () => {
      const clock = new ManualClock()
      const queue = queueOn(clock)
      queue.add('processing')
      await queue.get()
      queue.add('processing')
      queue.add('ready')
      queue.addAfter('delayed', 10)
      queue.shutDown()
      queue.add('late')
      assert.equal(clock.pending, 0)
      assert.equal((await queue.get())?.key, 'ready')
      let drained = false
      void queue.drained.then(() => (drained = true))
      const last = queue.get()
      queue.done('ready')
      queue.done('processing')
      assert.equal((await last)?.key, 'processing')
      await settle()
      assert.equal(drained, false)
      queue.done('processing')
      await settle()
      assert.equal(drained, true)
      assert.equal(await queue.get(), undefined)
    })

    it('lets waiting workers go at once, and discards on request', async () => {
      const queue = queueOn(new ManualClock())
      const waiting = queue.get()
      queue.shutDown({ discardReady: true })
      assert.equal(await waiting, undefined)
      await queue.drained
      const full = queueOn(new ManualClock())
      full.add('a')
      full.shutDown({ discardReady: true })
      assert.equal(await full.get(), undefined)
    })
  })

  it('does what a naive model does, whatever is asked in whatever order', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
    const priority = fc.constantFrom(PRIORITY.user, PRIORITY.event, PRIORITY.resync)
    const ms = fc.integer({ min: 0, max: 50 })
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), key, priority }),
      fc.record({ do: fc.constant('addAfter' as const), key, priority, ms }),
      fc.record({ do: fc.constant('fail' as const), nth: fc.nat(4) }),
      fc.record({ do: fc.constant('done' as const), nth: fc.nat(4) }),
      fc.record({ do: fc.constant('get' as const) }),
      fc.record({ do: fc.constant('advance' as const), ms }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), async steps => {
        const clock = new ManualClock()
        const queue = queueOn(clock, () => 1)
        const model = new NaiveQueue()
        const handed: string[] = []
        const held: string[] = []
        const get = async (): Promise<void> => {
          model.get()
          void queue.get().then(item => {
            if (item === undefined) return
            assert.ok(!held.includes(item.key), `${item.key} is on two workers`)
            held.push(item.key)
            handed.push(`${item.key}@${item.priority}`)
          })
          await Promise.resolve()
        }
        const finish = (mine: string): void => {
          held.splice(held.indexOf(mine), 1)
          queue.done(mine)
          model.done(mine)
        }
        for (const [index, now] of steps.entries()) {
          const mine = held[('nth' in now ? now.nth : 0) % Math.max(1, held.length)]
          if (now.do === 'get') await get()
          else if (now.do === 'advance') {
            clock.advanceNow(now.ms)
            model.advance(now.ms)
          } else if (now.do === 'add') {
            queue.add(now.key, now.priority)
            model.add(now.key, now.priority)
          } else if (now.do === 'addAfter') {
            queue.addAfter(now.key, now.ms, now.priority)
            model.addAfter(now.key, now.ms, now.priority)
          } else if (mine !== undefined) {
            if (now.do === 'fail') {
              queue.addRateLimited(mine, PRIORITY.event)
              model.fail(mine)
            } else {
              queue.forget(mine)
              model.forget(mine)
            }
            finish(mine)
          }
          await Promise.resolve()
          assert.deepEqual(handed, model.handed, `after step ${index}`)
        }
        // To the end: whatever was asked for is handed out, and nothing else.
        clock.advanceNow(1_000_000)
        model.advance(1_000_000)
        for (let round = 0; round < 40; round += 1) {
          await get()
          for (const mine of [...held]) finish(mine)
          await Promise.resolve()
        }
        assert.deepEqual(handed, model.handed)
        assert.deepEqual(model.unserved(), [])
        assert.equal(queue.delayedCount, 0)
        queue.shutDown()
      }),
      { numRuns: sized(300, 20_000) },
    )
  }).timeout(120_000)

  it('moves 100,000 keys through 16 workers, each key never twice at once', async () => {
    const queue = new WorkQueue()
    const busy = new Set<string>()
    let processed = 0
    const worker = async (): Promise<void> => {
      for (let item = await queue.get(); item !== undefined; item = await queue.get()) {
        assert.ok(!busy.has(item.key))
        busy.add(item.key)
        if (processed % 1000 === 0) await new Promise(resolve => setImmediate(resolve))
        busy.delete(item.key)
        processed += 1
        queue.done(item.key)
      }
    }
    const workers = Array.from({ length: 16 }, worker)
    for (let index = 0; index < 100_000; index += 1) queue.add(`key-${index}`)
    queue.shutDown()
    await Promise.all(workers)
    assert.equal(processed, 100_000)
  })
})

/** The queue's promise as plainly as it can be written: lists, searched from the front, no indexes, no heap. */
class NaiveQueue {
  readonly handed: string[] = []
  #now = 0
  #ready: { key: string; priority: number }[] = []
  #again = new Map<string, number>()
  #delayed: { key: string; at: number; priority: number }[] = []
  readonly #processing = new Set<string>()
  readonly #failures = new Map<string, number>()
  #waiting = 0

  add(key: string, priority: number): void {
    if (this.#processing.has(key)) {
      this.#again.set(key, Math.max(priority, this.#again.get(key) ?? priority))
      return
    }
    const there = this.#ready.find(entry => entry.key === key)
    if (there !== undefined && there.priority >= priority) return
    this.#ready = [...this.#ready.filter(entry => entry.key !== key), { key, priority }]
    this.#serve()
  }

  addAfter(key: string, ms: number, priority: number): void {
    if (ms === 0) {
      this.add(key, priority)
      return
    }
    const there = this.#delayed.find(entry => entry.key === key) ?? { at: Number.POSITIVE_INFINITY, priority }
    if (there.at <= this.#now + ms && there.priority >= priority) return
    const merged = { key, at: Math.min(there.at, this.#now + ms), priority: Math.max(there.priority, priority) }
    this.#delayed = [...this.#delayed.filter(entry => entry.key !== key), merged]
  }

  fail(key: string): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.addAfter(key, Math.min(60_000, 5 * 2 ** failures), PRIORITY.event)
  }

  forget(key: string): void {
    this.#failures.delete(key)
  }

  done(key: string): void {
    this.#processing.delete(key)
    const priority = this.#again.get(key)
    this.#again.delete(key)
    if (priority !== undefined) this.add(key, priority)
  }

  get(): void {
    this.#waiting += 1
    this.#serve()
  }

  advance(ms: number): void {
    this.#now += ms
    const due = this.#delayed.filter(entry => entry.at <= this.#now).sort((a, b) => a.at - b.at)
    this.#delayed = this.#delayed.filter(entry => entry.at > this.#now)
    for (const { key, priority } of due) this.add(key, priority)
  }

  unserved(): string[] {
    return [...this.#ready, ...this.#delayed].map(entry => entry.key)
  }

  #serve(): void {
    while (this.#waiting > 0 && this.#ready.length > 0) {
      const best = Math.max(...this.#ready.map(entry => entry.priority))
      const entry = this.#ready.find(candidate => candidate.priority === best)!
      this.#ready = this.#ready.filter(candidate => candidate !== entry)
      this.#processing.add(entry.key)
      this.#waiting -= 1
      this.handed.push(`${entry.key}@${entry.priority}`)
    }
  }
}
