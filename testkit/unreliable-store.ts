/** A list and watch source in memory that fails on demand: the fault port of the reflector's tests. */
import type { Resource, ResourceType } from '../lib/model/resource.ts'
import type { ResourceList, ResourceStore, WatchEvent } from '../runtime/store/resource-store.ts'
import { StoreError } from '../runtime/store/store-error.ts'

export type Thing = Resource<{ readonly value: number }, undefined>

export const thingType: ResourceType<Thing> = {
  apiVersion: 'test/v1',
  kind: 'Thing',
  plural: 'things',
  validate: () => [],
  prune: spec => spec,
  admitDelete: () => undefined,
}

/** A Thing as a store would hand it out. */
export const thing = (name: string, version: number, value = 0, uid = `uid-${name}`, namespace = 'n'): Thing => ({
  apiVersion: 'test/v1',
  kind: 'Thing',
  metadata: {
    name,
    namespace,
    uid,
    resourceVersion: String(version),
    generation: value,
    creationTimestamp: '2026-01-01T00:00:00Z',
    finalizers: [],
    labels: { parity: value % 2 === 0 ? 'even' : 'odd' },
    annotations: {},
    ownerReferences: [],
  },
  spec: { value },
})

/** error: the stream throws. close: it ends. stall: it says nothing more, whatever happens, and ignores its signal. */
export type StreamFault = 'error' | 'gone' | 'close' | 'stall'

type Change = Exclude<WatchEvent<Thing>, { type: 'bookmark' }>

interface Entry {
  /** Counts changes; unlike versions, never falls. */
  readonly offset: number
  readonly version: number
  readonly event: Change
}

export class UnreliableStore implements Pick<ResourceStore, 'list' | 'watch'> {
  readonly objects = new Map<string, Thing>()
  /** What the next calls of list throw, one each; 'hang' never answers. */
  readonly listFaults: (Error | 'hang')[] = []
  /** What becomes of the next streams, before they yield anything. */
  readonly watchFaults: StreamFault[] = []
  lists = 0
  watches = 0
  /** Of every stream so far. */
  readonly signals: AbortSignal[] = []
  #version = 100_000
  #offset = 0
  #compactedTo = 0
  #log: Entry[] = []
  #lives = 0
  #wake = Promise.withResolvers<StreamFault | undefined>()

  put(name: string, value: number): void {
    const old = this.objects.get(name)
    const object = thing(name, ++this.#version, value, old?.metadata.uid ?? `uid-${name}-${++this.#lives}`)
    this.objects.set(name, object)
    this.#append({ type: old === undefined ? 'added' : 'modified', object })
  }

  remove(name: string): void {
    const old = this.objects.get(name)
    if (old === undefined) return
    this.objects.delete(name)
    const metadata = { ...old.metadata, resourceVersion: String(++this.#version) }
    this.#append({ type: 'deleted', object: { ...old, metadata } })
  }

  /** Tells open streams how far they are. */
  bookmark(): void {
    this.#notify()
  }

  /** Forgets the changes up to now: who is behind gets Gone. */
  compact(): void {
    this.#compactedTo = this.#offset
    this.#log = []
  }

  /** As if an old backup had been restored: versions fall. */
  rewind(versions: number): void {
    this.#version -= versions
    this.#log = []
    for (const [name, { spec, metadata }] of this.objects)
      this.objects.set(name, thing(name, Number(metadata.resourceVersion) - versions, spec.value, metadata.uid))
  }

  /** Breaks every open stream. */
  break(fault: StreamFault): void {
    this.#notify(fault)
  }

  async list<R extends Resource>(_type: ResourceType<R>): Promise<ResourceList<R>> {
    this.lists += 1
    const fault = this.listFaults.shift()
    if (fault === 'hang') return new Promise(() => undefined)
    if (fault !== undefined) throw fault
    return { items: [...this.objects.values()] as unknown as R[], resourceVersion: String(this.#version) }
  }

  async *watch<R extends Resource>(
    _type: ResourceType<R>,
    { from, signal }: { readonly from: string; readonly signal: AbortSignal },
  ): AsyncGenerator<WatchEvent<R>> {
    this.watches += 1
    this.signals.push(signal)
    const fail = async (fault: StreamFault): Promise<void> => {
      if (fault === 'error') throw new StoreError('Unavailable', 'The connection was reset')
      if (fault === 'gone') throw new StoreError('Gone', 'Too old')
      if (fault === 'stall') await new Promise(() => undefined)
    }
    const planned = this.watchFaults.shift()
    if (planned !== undefined) {
      await fail(planned)
      return
    }
    // Each version is one change, so the log reaches back as many versions as it has entries.
    if (Number(from) < this.#version - this.#log.length) throw new StoreError('Gone', 'Too old')
    const first = this.#log.find(entry => entry.version > Number(from))
    let offset = first === undefined ? this.#offset : first.offset - 1
    for (;;) {
      const [wake, reached] = [this.#wake, this.#version]
      if (offset < this.#compactedTo) throw new StoreError('Gone', 'Too old')
      for (const entry of this.#log.filter(candidate => candidate.offset > offset)) {
        offset = entry.offset
        yield entry.event as unknown as WatchEvent<R>
      }
      yield { type: 'bookmark', resourceVersion: String(reached) }
      if (signal.aborted) return
      const aborted = new Promise<'aborted'>(resolve => signal.addEventListener('abort', () => resolve('aborted')))
      const woken = await Promise.race([wake.promise, aborted])
      if (woken === 'aborted') return
      if (woken !== undefined) {
        await fail(woken)
        return
      }
    }
  }

  #append(event: Entry['event']): void {
    this.#log.push({ offset: ++this.#offset, version: this.#version, event })
    this.#notify()
  }

  #notify(fault?: StreamFault): void {
    const wake = this.#wake
    this.#wake = Promise.withResolvers()
    wake.resolve(fault)
  }
}
