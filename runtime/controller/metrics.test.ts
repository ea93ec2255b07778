import assert from 'node:assert/strict'
import { Registry } from 'prom-client'
import { ManualClock } from '../../testkit/manual-clock.ts'
import { type Thing, thingType, UnreliableStore } from '../../testkit/unreliable-store.ts'
import { silentLog } from '../log/log.ts'
import { Cache } from './cache.ts'
import { Controller } from './controller.ts'
import { controlMetrics } from './metrics.ts'
import { Reflector } from './reflector.ts'

/** The value of one sample line of the exposition, undefined when there is none. */
const sample = async (registry: Registry, line: string): Promise<number | undefined> => {
  const found = (await registry.metrics()).split('\n').find(candidate => candidate.startsWith(`${line} `))
  return found === undefined ? undefined : Number(found.slice(line.length + 1))
}

describe('controlMetrics', () => {
  it('can be asked for by every part of a process', () => {
    const registry = new Registry()
    assert.equal(controlMetrics(registry), controlMetrics(registry))
    assert.notEqual(controlMetrics(registry), controlMetrics(new Registry()))
  })

  it('shows a queue, its waits and its work in seconds, under the names of controller-runtime', async () => {
    const registry = new Registry()
    const clock = new ManualClock()
    const metrics = controlMetrics(registry)
    const gate = Promise.withResolvers<undefined>()
    const controller = new Controller({
      name: 'c',
      log: silentLog,
      clock,
      concurrency: 1,
      metrics,
      reconcile: async () => {
        await gate.promise
      },
    })
    const labels = '{name="c",controller="c"}'
    assert.equal(await sample(registry, `workqueue_depth${labels}`), 0)
    controller.start()
    for (const name of ['a', 'b', 'c', 'b']) controller.enqueue({ namespace: 'n', name })
    await clock.advance(4_000)
    assert.equal(await sample(registry, `workqueue_adds_total${labels}`), 3)
    assert.equal(await sample(registry, `workqueue_depth${labels}`), 2)
    assert.equal(await sample(registry, `workqueue_unfinished_work_seconds${labels}`), 4)
    assert.equal(await sample(registry, `workqueue_longest_running_processor_seconds${labels}`), 4)
    assert.equal(await sample(registry, 'controller_runtime_active_workers{controller="c"}'), 1)
    assert.equal(await sample(registry, 'controller_runtime_max_concurrent_reconciles{controller="c"}'), 1)
    gate.resolve(undefined)
    await clock.advance(1)
    assert.equal(await sample(registry, `workqueue_depth${labels}`), 0)
    assert.equal(await sample(registry, `workqueue_unfinished_work_seconds${labels}`), 0)
    assert.equal(await sample(registry, `workqueue_queue_duration_seconds_sum${labels}`), 8)
    assert.equal(await sample(registry, `workqueue_queue_duration_seconds_count${labels}`), 3)
    assert.equal(await sample(registry, `workqueue_work_duration_seconds_sum${labels}`), 4)
    assert.equal(await sample(registry, 'controller_runtime_reconcile_time_seconds_count{controller="c"}'), 3)
    assert.equal(await sample(registry, 'controller_runtime_reconcile_total{controller="c",result="success"}'), 3)
    assert.equal(await sample(registry, 'controller_runtime_reconcile_errors_total{controller="c"}'), 0)
    await controller.stop()
  })

  it('counts what a reflector lists, watches, receives, and finds to have missed', async () => {
    const registry = new Registry()
    const clock = new ManualClock()
    const store = new UnreliableStore()
    const sink = new Cache<Thing>({ log: silentLog })
    const reflector = new Reflector<Thing>({
      store,
      type: thingType,
      sink,
      log: silentLog,
      clock,
      random: () => 1,
      metrics: controlMetrics(registry),
      name: 'r',
    })
    store.put('a', 1)
    reflector.start()
    await clock.advance(0)
    store.put('b', 1)
    await clock.advance(0)
    store.watchFaults.push('error')
    store.break('error')
    await clock.advance(0)
    store.put('c', 1)
    store.remove('a')
    store.compact()
    await clock.advance(10_000)
    assert.equal(await sample(registry, 'reflector_lists_total{name="r",reason="start"}'), 1)
    assert.equal(await sample(registry, 'reflector_lists_total{name="r",reason="gone"}'), 1)
    assert.equal(await sample(registry, 'reflector_events_total{name="r"}'), 1)
    assert.equal(await sample(registry, 'reflector_missed_events_total{name="r"}'), 2)
    assert.equal(await sample(registry, 'reflector_watches_total{name="r",end="error"}'), 2)
    assert.equal(await sample(registry, 'reflector_watches_total{name="r",end="gone"}'), 1)
    assert.equal(await sample(registry, 'reflector_last_rv{name="r"}'), 100_004)
    assert.equal(await sample(registry, 'reflector_failing_seconds{name="r"}'), 0)
    await reflector.stop()
    assert.equal(await sample(registry, 'reflector_watches_total{name="r",end="stopped"}'), 1)
  })
})
