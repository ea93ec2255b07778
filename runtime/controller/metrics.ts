/**
 * What control loops show on a prom-client Registry, under controller-runtime's names, so that its public dashboards fit.
 * One set per registry, however many parts of a process ask for it.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ControlMetrics, ReconcileOutcome, ReflectorHealth, WorkQueueState } from './observers.ts'

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

const known = new WeakMap<Registry, ControlMetrics>()

/** The control loops' metrics of a registry, made at the first call. */
export const controlMetrics = (registry: Registry): ControlMetrics => {
  const there = known.get(registry)
  if (there !== undefined) return there
  const made = create(registry)
  known.set(registry, made)
  return made
}

const create = (registry: Registry): ControlMetrics => {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]): Gauge<L> =>
    new Gauge({ name, help, labelNames, registers })
  const seconds = <L extends string>(name: string, help: string, ...labelNames: L[]): Histogram<L> =>
    new Histogram({ name, help, labelNames, buckets: SECONDS, registers })

  const queues = queueMetrics(registry)
  const reconciles = counter('controller_runtime_reconcile_total', 'Reconciles by result', 'controller', 'result')
  const errors = counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed', 'controller')
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciles that failed and are not retried',
    'controller',
  )
  const timeouts = counter(
    'controller_runtime_reconcile_timeouts_total',
    'Reconciles that met their deadline',
    'controller',
  )
  const took = seconds('controller_runtime_reconcile_time_seconds', 'How long a reconcile takes', 'controller')
  const active = gauge('controller_runtime_active_workers', 'Reconciles under way', 'controller')
  const most = gauge('controller_runtime_max_concurrent_reconciles', 'Reconciles allowed at once', 'controller')

  const asked = counter(
    'live_view_reads_total',
    'Reads of the store where a cache and our own writes did not tell how an object is, by reason',
    'type',
    'why',
  )

  return {
    ...queues,
    forController: (controller, concurrency) => {
      most.set({ controller }, concurrency)
      active.set({ controller }, 0)
      for (const result of ['success', 'requeue', 'requeue_after', 'error']) reconciles.inc({ controller, result }, 0)
      for (const total of [errors, terminal, timeouts]) total.inc({ controller }, 0)
      return {
        queue: queues.forQueue(controller),
        reconciling: () => active.inc({ controller }),
        timedOut: () => timeouts.inc({ controller }),
        reconciled: (outcome, tookMs) => {
          active.dec({ controller })
          took.observe({ controller }, tookMs / 1000)
          reconciles.inc({ controller, result: resultLabel(outcome) })
          if (resultLabel(outcome) === 'error') errors.inc({ controller })
          if (outcome === 'terminal_error') terminal.inc({ controller })
        },
      }
    },
    forReflector: reflectorMetrics(registry),
    forLiveView: type => ({ asked: why => asked.inc({ type, why }) }),
  }
}

/** controller-runtime counts terminal errors as errors too. */
const resultLabel = (outcome: ReconcileOutcome): string => (outcome === 'terminal_error' ? 'error' : outcome)

const queueMetrics = (registry: Registry): Pick<ControlMetrics, 'forQueue' | 'watchQueue'> => {
  const registers = [registry]
  const labelNames = ['name', 'controller'] as const
  const watched = new Map<string, WorkQueueState>()
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys added', labelNames, registers })
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Keys added again after a failure',
    labelNames,
    registers,
  })
  const waited = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long a key waits for a worker',
    labelNames,
    buckets: SECONDS,
    registers,
  })
  const worked = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long a worker has a key',
    labelNames,
    buckets: SECONDS,
    registers,
  })
  /** A gauge computed from the watched queues when it is read. */
  const computed = (name: string, help: string, value: (queue: WorkQueueState) => number): void => {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        for (const [queueName, queue] of watched) this.set({ name: queueName, controller: queueName }, value(queue))
      },
    })
  }
  computed('workqueue_depth', 'Keys that wait for a worker', queue =>
    queue
      .depths()
      .values()
      .reduce((sum, depth) => sum + depth, 0),
  )
  computed('workqueue_unfinished_work_seconds', 'Work under way, added up', queue =>
    queue.processingMs().reduce((sum, ms) => sum + ms / 1000, 0),
  )
  computed('workqueue_longest_running_processor_seconds', 'The longest work under way', queue =>
    queue.processingMs().reduce((longest, ms) => Math.max(longest, ms / 1000), 0),
  )
  return {
    forQueue: name => {
      const labels = { name, controller: name }
      adds.inc(labels, 0)
      retries.inc(labels, 0)
      return {
        added: () => adds.inc(labels),
        retried: () => retries.inc(labels),
        started: ms => waited.observe(labels, ms / 1000),
        finished: ms => worked.observe(labels, ms / 1000),
      }
    },
    watchQueue: (name, queue) => {
      watched.set(name, queue)
    },
  }
}

const reflectorMetrics = (registry: Registry): ControlMetrics['forReflector'] => {
  const registers = [registry]
  const watched = new Map<string, () => ReflectorHealth>()
  const lists = new Counter({
    name: 'reflector_lists_total',
    help: 'Lists made, by why',
    labelNames: ['name', 'reason'],
    registers,
  })
  const watches = new Counter({
    name: 'reflector_watches_total',
    help: 'Watches ended, by how',
    labelNames: ['name', 'end'],
    registers,
  })
  const events = new Counter({
    name: 'reflector_events_total',
    help: 'Changes received',
    labelNames: ['name'],
    registers,
  })
  const missed = new Counter({
    name: 'reflector_missed_events_total',
    help: 'Changes that a later list found and no watch had brought',
    labelNames: ['name'],
    registers,
  })
  const computed = (name: string, help: string, value: (health: ReflectorHealth) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['name'],
      registers,
      collect() {
        for (const [reflector, health] of watched) this.set({ name: reflector }, value(health()))
      },
    })
  }
  computed('reflector_last_rv', 'Resource version reached', health => Number(health.resourceVersion ?? 0))
  computed('reflector_idle_seconds', 'Since the store last said anything', health => health.idleMs / 1000)
  computed(
    'reflector_failing_seconds',
    'How long without a list or watch that worked',
    health => health.failingMs / 1000,
  )
  return (name, health) => {
    watched.set(name, health)
    events.inc({ name }, 0)
    missed.inc({ name }, 0)
    return {
      listed: (reason, missedEvents) => {
        lists.inc({ name, reason })
        missed.inc({ name }, missedEvents)
      },
      watchEnded: end => {
        watches.inc({ name, end })
      },
      event: () => {
        events.inc({ name })
      },
    }
  }
}
