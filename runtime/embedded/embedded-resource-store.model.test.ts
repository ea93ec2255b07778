/** Random sequences of every verb against a small model of what the port promises; then the log against the model's log. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { sized } from '../../testkit/full.ts'
import type { ResourcePatch, ResourceStore, Selector } from '../store/resource-store.ts'
import { isStoreError, type StoreErrorReason } from '../store/store-error.ts'
import { type Widget, type WidgetSpec, widgets } from '../store/widget.contract.ts'
import { EmbeddedResourceStore } from './embedded-resource-store.ts'

const NAMES = ['a', 'b', 'c'] as const
const FINALIZERS = ['m.svc/one', 'm.svc/two'] as const
const CLIENTS = ['ada', 'bob'] as const
type Json = Record<string, unknown>

/** Which uid and version a call is bound to, told apart from their values. */
interface Bound {
  readonly uid: 'current' | 'foreign'
  readonly version: 'none' | 'current' | 'stale'
}

type Step = { readonly client: (typeof CLIENTS)[number]; readonly name: (typeof NAMES)[number] } & (
  | {
      readonly verb: 'create'
      readonly spec: WidgetSpec
      readonly labels: Json
      readonly finalizers: readonly string[]
    }
  | { readonly verb: 'patch'; readonly patch: ResourcePatch; readonly bound: Bound }
  | { readonly verb: 'patchStatus'; readonly status: Json; readonly bound: Bound }
  | { readonly verb: 'delete'; readonly bound: Bound }
)

/** An object of the model; versions are counted, not compared. */
interface ModelObject {
  spec: Json
  status: Json | undefined
  labels: Json
  finalizers: readonly string[]
  generation: number
  deleting: boolean
  manager: string
}
type Outcome = StoreErrorReason | { readonly object: ModelObject | undefined; readonly wrote: boolean }

/** The port's promises, written down once more and as plainly as possible. */
class Model {
  readonly objects = new Map<string, ModelObject>()
  readonly log: { type: string; name: string; object: ModelObject; before: Json | undefined }[] = []

  run(step: Step): Outcome {
    const current = this.objects.get(step.name)
    if (step.verb === 'create') {
      if (!valid(step.spec as Json)) return 'Invalid'
      if (current !== undefined) return 'AlreadyExists'
      const made = {
        spec: { color: 'grey', ...step.spec },
        status: undefined,
        labels: step.labels,
        finalizers: step.finalizers,
        generation: 1,
        deleting: false,
        manager: step.client,
      }
      return this.write(step.name, 'added', made, undefined)
    }
    if (current === undefined) return 'NotFound'
    if (step.verb === 'delete') {
      if (step.bound.uid === 'foreign' || step.bound.version === 'stale') return 'Conflict'
      if (current.deleting) return { object: undefined, wrote: false }
      if (current.spec['guarded'] === true) return 'Forbidden'
      if (current.finalizers.length === 0)
        return this.write(step.name, 'deleted', { ...current, manager: step.client }, current.labels)
      const begun = { ...current, deleting: true, generation: current.generation + 1, manager: step.client }
      return this.write(step.name, 'modified', begun, current.labels)
    }
    if (step.bound.version === 'stale') return 'Conflict'
    if (step.bound.uid === 'foreign') return 'Invalid'
    const next = structuredClone(current)
    if (step.verb === 'patchStatus') {
      if (step.status['phase'] === 'impossible') return 'Invalid'
      next.status = merge(current.status ?? {}, step.status)
      if (current.status === undefined && equal(next.status, {})) return { object: current, wrote: false }
    } else {
      const { metadata, spec } = step.patch
      if (spec !== undefined) next.spec = { color: 'grey', ...merge(current.spec, spec) }
      next.labels = merge(current.labels, metadata?.labels ?? {})
      next.finalizers = metadata?.finalizers ?? current.finalizers
      if (!valid(next.spec)) return 'Invalid'
      if (current.spec['serial'] !== undefined && current.spec['serial'] !== next.spec['serial']) return 'Invalid'
      if (current.deleting && next.finalizers.some(one => !current.finalizers.includes(one))) return 'Invalid'
      if (!equal(next.spec, current.spec)) {
        next.generation++
        next.manager = step.client
      }
    }
    if (equal(next, current)) return { object: current, wrote: false }
    const type = next.deleting && next.finalizers.length === 0 ? 'deleted' : 'modified'
    return this.write(step.name, type, next, current.labels)
  }

  /** The events that a watcher of these labels sees. */
  seen(labels: Json): unknown[] {
    const matches = (of: Json | undefined): boolean =>
      of !== undefined && Object.entries(labels).every(([key, value]) => of[key] === value)
    return this.log.flatMap(({ type, name, object, before }) => {
      const [was, is] = [matches(before), type !== 'deleted' && matches(object.labels)]
      return was || is ? [[was ? (is ? 'modified' : 'deleted') : 'added', name, object]] : []
    })
  }

  private write(name: string, type: string, object: ModelObject, before: Json | undefined): Outcome {
    this.log.push({ type, name, object, before })
    if (type === 'deleted') this.objects.delete(name)
    else this.objects.set(name, object)
    return { object, wrote: true }
  }
}

const valid = (spec: Json): boolean => !(Number(spec['size'] ?? 0) > 10)

const sorted = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value
const equal = (a: unknown, b: unknown): boolean => JSON.stringify(a, sorted) === JSON.stringify(b, sorted)

const merge = (target: Json, patch: Json): Json => {
  const result = { ...target }
  for (const key in patch) {
    const value = patch[key]
    if (value === null) Reflect.deleteProperty(result, key)
    else if (typeof value !== 'object' || Array.isArray(value)) result[key] = value
    else result[key] = merge(typeof result[key] === 'object' ? (result[key] as Json) : {}, value as Json)
  }
  return result
}

const asModel = ({ metadata, spec, status }: Widget): ModelObject => ({
  spec: { ...spec },
  status: status === undefined ? undefined : { ...status },
  labels: { ...metadata.labels },
  finalizers: metadata.finalizers,
  generation: metadata.generation,
  deleting: metadata.deletionTimestamp !== undefined,
  manager: metadata.lastManager ?? '',
})

// --- what is tried -------------------------------------------------------------------------------------------------------

/** Every field may be absent. */
const PARTIAL: { requiredKeys: []; noNullPrototype: true } = { requiredKeys: [], noNullPrototype: true }

/** Any text that JSON carries, NUL and lone surrogates too. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.constantFrom('red', '\u0000', '\ud800', '__proto__'),
)
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { freq: 4 })
const box = { width: fc.integer(), height: fc.double({ noNaN: true, noDefaultInfinity: true }).map(n => n + 0) }
const fields = {
  color: text,
  size: fc.integer({ min: 0, max: 11 }),
  parts: fc.array(text, { maxLength: 2 }),
  box: fc.record(box, PARTIAL),
  guarded: fc.boolean(),
  serial: fc.constantFrom('s1', 's2'),
}
const spec = fc.record(fields, PARTIAL)
const specPatch = fc.record(
  {
    color: orNull(fields.color),
    size: orNull(fields.size),
    parts: orNull(fields.parts),
    box: orNull(fc.record({ width: orNull(box.width), height: orNull(box.height) }, PARTIAL)),
    guarded: orNull(fields.guarded),
    serial: fields.serial,
  },
  PARTIAL,
)
const label = fc.constantFrom('x', 'y')
const labels = fc.record({ k: label, l: label }, PARTIAL)
const finalizers = fc.subarray([...FINALIZERS])
const metadata = fc.record({ labels: fc.record({ k: orNull(label), l: orNull(label) }, PARTIAL), finalizers }, PARTIAL)
const status = fc.record(
  {
    phase: orNull(fc.constantFrom('up', 'down', 'impossible')),
    seen: orNull(fc.record({ times: orNull(fc.nat()), by: orNull(text) }, PARTIAL)),
    notes: orNull(fields.parts),
  },
  PARTIAL,
)
const bound: fc.Arbitrary<Bound> = fc.record({
  uid: fc.oneof({ weight: 9, arbitrary: fc.constant('current' as const) }, fc.constant('foreign' as const)),
  version: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('none' as const, 'current' as const) },
    fc.constant('stale' as const),
  ),
})
const whoAndWhat = { client: fc.constantFrom(...CLIENTS), name: fc.constantFrom(...NAMES) }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ ...whoAndWhat, verb: fc.constant('create' as const), spec, labels, finalizers }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      ...whoAndWhat,
      verb: fc.constant('patch' as const),
      patch: fc.record({ spec: specPatch, metadata }, PARTIAL),
      bound,
    }),
  },
  { weight: 2, arbitrary: fc.record({ ...whoAndWhat, verb: fc.constant('patchStatus' as const), status, bound }) },
  { weight: 3, arbitrary: fc.record({ ...whoAndWhat, verb: fc.constant('delete' as const), bound }) },
)

describe('EmbeddedResourceStore, against a model of the port', () => {
  const stores = new Map<string, EmbeddedResourceStore>()
  before(async () => {
    const url = await storeDatabase()
    for (const clientName of CLIENTS) stores.set(clientName, new EmbeddedResourceStore({ url, clientName }))
  })
  after(async () => {
    await Promise.all([...stores.values()].map(store => store.close()))
  })

  const run = async (store: ResourceStore, namespace: string, one: Step): Promise<Outcome> => {
    const key = { namespace, name: one.name }
    const before = await store.get(widgets, key)
    const preconditions = (given: Bound): { uid: string; resourceVersion?: string } => {
      const uid = given.uid === 'foreign' ? 'ffffffff-0000-4000-8000-000000000000' : (before?.metadata.uid ?? 'none')
      const version = before?.metadata.resourceVersion ?? '1'
      if (given.version === 'none') return { uid }
      return { uid, resourceVersion: given.version === 'current' ? version : String(BigInt(version) - 1n) }
    }
    const call = async (): Promise<Widget | undefined> => {
      switch (one.verb) {
        case 'create':
          return store.create(widgets, {
            ...key,
            spec: one.spec,
            labels: one.labels as Record<string, string>,
            finalizers: one.finalizers,
          })
        case 'patch':
          return store.patch(widgets, key, one.patch, preconditions(one.bound))
        case 'patchStatus':
          return store.patchStatus(widgets, key, one.status, preconditions(one.bound))
        case 'delete':
          await store.delete(widgets, key, preconditions(one.bound))
          return undefined
      }
    }
    try {
      const answered = await call()
      const found = await store.get(widgets, key)
      if (answered !== undefined && found !== undefined) assert.deepEqual(answered, found)
      const wrote = found?.metadata.resourceVersion !== before?.metadata.resourceVersion
      return { object: answered === undefined ? undefined : asModel(answered), wrote }
    } catch (error) {
      if (!isStoreError(error)) throw error
      assert.deepEqual(await store.get(widgets, key), before, 'a refused call changed something')
      return error.reason
    }
  }

  const watched = async (store: ResourceStore, from: string, selector: Selector, count: number): Promise<unknown[]> => {
    const abort = new AbortController()
    const events: unknown[] = []
    if (count === 0) return events
    for await (const event of store.watch(widgets, { from, selector, signal: abort.signal })) {
      if (event.type === 'bookmark') continue
      events.push([event.type, event.object.metadata.name, asModel(event.object)])
      if (events.length === count) abort.abort()
    }
    return events
  }

  let runs = 0
  it('every sequence of calls answers, leaves and tells watchers what the model does', async function () {
    this.timeout(180_000)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), async steps => {
        const namespace = `model-${++runs}`
        const model = new Model()
        const [ada, bob] = CLIENTS.map(client => stores.get(client)!)
        const { resourceVersion: from } = await ada!.list(widgets, { namespace })
        for (const one of steps) {
          const expected = model.run(one)
          const outcome = await run(stores.get(one.client)!, namespace, one)
          if (typeof expected === 'string' || typeof outcome === 'string') assert.deepEqual(outcome, expected)
          else {
            assert.equal(outcome.wrote, expected.wrote)
            if (one.verb !== 'delete') assert.deepEqual(outcome.object, expected.object)
          }
        }
        const { items } = await bob!.list(widgets, { namespace })
        assert.deepEqual(
          items.map(item => [item.metadata.name, asModel(item)]),
          [...model.objects].sort(([a], [b]) => (a < b ? -1 : 1)),
        )
        for (const labels of [{}, { k: 'x' }, { k: 'x', l: 'y' }]) {
          const expected = model.seen(labels)
          assert.deepEqual(await watched(bob!, from, { namespace, labels }, expected.length), expected)
        }
      }),
      { numRuns: sized(40, 600) },
    )
  })
})
