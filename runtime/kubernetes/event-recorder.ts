/**
 * Tells what happened to an object as events of the cluster (events.k8s.io/v1), for `kubectl describe`. Fire and forget:
 * nobody waits for an event, none fails anything, and too many of one object are not told.
 *
 * Events of one object are sent in the order they were told, and named so that lists show them in it. One that says the
 * same as a recent one raises that one's count.
 */

import { Counter, type Registry } from 'prom-client'
import type { Log } from '../log/log.ts'
import { isStoreError } from '../store/store-error.ts'
import { EventLimits } from './event-limits.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { microTime } from './micro-time.ts'

/** What an event is about. */
export interface EventSubject {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** What happened. `reason` and `action` are for machines, `note` for people: no secrets. */
export interface EventNote {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
}

export interface EventRecorderOptions {
  readonly api: KubernetesApi
  /** The component that tells, such as `svc.internal/operator`. */
  readonly controller: string
  /** Which of its processes, such as the pod's name. */
  readonly instance: string
  readonly log: Log
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly now?: () => number
}

interface Told {
  readonly subject: EventSubject
  readonly event: EventNote
  readonly micros: number
}

interface Series {
  readonly name: string
  count: number
  lastMicros: number
}

/** Objects are spread over lanes; each lane sends one event after the other. */
const LANES = 4
const MAX_WAITING = 5_000
const MAX_NOTE = 1024
const DEADLINE_MS = 5_000
/** An event that says the same within this long counts up the one before. */
const SERIES_MS = 6 * 60_000
const MAX_SERIES = 4_096

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #now: () => number
  readonly #lanes = Array.from({ length: LANES }, (): Promise<void> => Promise.resolve())
  readonly #series = new Map<string, Series>()
  readonly #limits: EventLimits
  readonly #events: Counter<'result'>
  #waiting = 0
  #lastMicros = 0
  #stopped = false

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#limits = new EventLimits(this.#now)
    this.#events = new Counter({
      name: 'kubernetes_events_total',
      help: 'Events that were told, by what became of them',
      labelNames: ['result'],
      registers: [options.registry],
    })
    for (const result of ['sent', 'failed', 'dropped']) this.#events.inc({ result }, 0)
  }

  /** Tells it, some time soon. Never throws. */
  record(subject: EventSubject, event: EventNote): void {
    if (this.#stopped || this.#waiting >= MAX_WAITING || !this.#limits.take(subject.uid)) {
      this.#events.inc({ result: 'dropped' })
      return
    }
    // Strictly rising, so that names sort as things happened.
    this.#lastMicros = Math.max(this.#lastMicros + 1, this.#now() * 1000)
    const told = { subject, event, micros: this.#lastMicros }
    const lane = laneOf(subject.uid)
    this.#waiting += 1
    this.#lanes[lane] = (this.#lanes[lane] ?? Promise.resolve()).then(() => this.#send(told))
  }

  /** Takes no more; resolves once what was told is sent, or after `withinMs`. */
  async stop(withinMs = 1_000): Promise<void> {
    this.#stopped = true
    const late = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => late.resolve(undefined), withinMs)
    await Promise.race([Promise.all(this.#lanes), late.promise])
    clearTimeout(timer)
  }

  async #send(told: Told): Promise<void> {
    try {
      await this.#raiseOrCreate(told)
      this.#events.inc({ result: 'sent' })
    } catch (error) {
      this.#events.inc({ result: 'failed' })
      const { subject, event } = told
      // In a namespace that is being deleted nothing can be told.
      const level = isStoreError(error, 'Forbidden', 'NotFound') ? 'debug' : 'warn'
      this.#options.log[level]({ err: error, subject: subject.name, reason: event.reason }, 'An event was not told')
    } finally {
      this.#waiting -= 1
    }
  }

  async #raiseOrCreate(told: Told): Promise<void> {
    const id = seriesId(told)
    const known = this.#series.get(id)
    if (known !== undefined && told.micros - known.lastMicros <= SERIES_MS * 1000) {
      known.count += 1
      known.lastMicros = told.micros
      if (await this.#raise(told.subject, known)) return
    }
    const name = eventName(told)
    await this.#create(told, name)
    this.#series.delete(id)
    this.#series.set(id, { name, count: 1, lastMicros: told.micros })
    if (this.#series.size > MAX_SERIES) this.#series.delete(this.#series.keys().next().value ?? '')
  }

  /** false: the cluster has dropped that event meanwhile. */
  async #raise({ namespace }: EventSubject, { name, count, lastMicros }: Series): Promise<boolean> {
    try {
      await this.#options.api.call({
        method: 'PATCH',
        path: `${eventsPath(namespace)}/${encodeURIComponent(name)}`,
        contentType: 'application/merge-patch+json',
        body: { series: { count, lastObservedTime: microTime(lastMicros) } },
        deadlineMs: DEADLINE_MS,
      })
      return true
    } catch (error) {
      if (isStoreError(error, 'NotFound')) return false
      throw error
    }
  }

  async #create({ subject, event, micros }: Told, name: string): Promise<void> {
    const { controller, instance } = this.#options
    await this.#options.api.call({
      method: 'POST',
      path: eventsPath(subject.namespace),
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace: subject.namespace },
        eventTime: microTime(micros),
        reportingController: controller,
        reportingInstance: instance,
        regarding: subject,
        type: event.type,
        reason: event.reason,
        action: event.action,
        note: event.note.slice(0, MAX_NOTE),
      },
      deadlineMs: DEADLINE_MS,
    })
  }
}

const eventsPath = (namespace: string): string =>
  `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events`

const seriesId = ({ subject, event }: Told): string =>
  [subject.uid, event.type, event.reason, event.action, event.note].join('\n')

/** Of one length for centuries, so that names sort by time. */
const eventName = ({ subject, micros }: Told): string =>
  `${subject.name.slice(0, 230)}.${(BigInt(micros) * 1000n).toString(16)}`

const laneOf = (uid: string): number => {
  let sum = 0
  for (const character of uid) sum = (sum * 31 + character.charCodeAt(0)) >>> 0
  return sum % LANES
}
