import assert from 'node:assert/strict'
import { memoryStore } from '../../testkit/memory-store.ts'
import { type Thing, thingType } from '../../testkit/unreliable-store.ts'
import { StoreError } from '../store/store-error.ts'
import { LiveView } from './live-view.ts'
import { notingStore } from './noting-store.ts'

const KEY = { namespace: 'ns', name: 'one' }
const OTHER = { ...thingType, kind: 'Other' }

/** A view whose cache never sees anything. */
const setUp = async () => {
  const inner = memoryStore(() => 0)
  const view = new LiveView<Thing>({
    cache: { get: () => undefined },
    seenUpTo: () => undefined,
    read: key => inner.get(thingType, key),
  })
  const store = notingStore(inner, view, thingType)
  const made = await store.create(thingType, { ...KEY, spec: { value: 1 } })
  return { view, inner, store, uid: made.metadata.uid, made }
}

describe('notingStore', () => {
  it('has the view show what every write of its kind came to', async () => {
    const { view, store, uid, made } = await setUp()
    assert.deepEqual(view.get(KEY), made)
    const patched = await store.patch(thingType, KEY, { spec: { value: 2 } }, { uid })
    assert.deepEqual(view.get(KEY), patched)
    const written = await store.patchStatus(thingType, KEY, { seen: true }, { uid })
    assert.deepEqual(view.get(KEY), written)
    await store.delete(thingType, KEY, { uid })
    assert.equal(await view.certain(KEY), undefined)
  })

  it('has the view show nothing of what went with its last finalizer, though a cache shows it for a while', async () => {
    const inner = memoryStore(() => 0)
    const seen: { object?: Thing } = {}
    const view = new LiveView<Thing>({
      cache: { get: () => seen.object },
      seenUpTo: () => seen.object?.metadata.resourceVersion,
      read: () => Promise.reject(new Error('nobody asks')),
    })
    const store = notingStore(inner, view, thingType)
    const { metadata } = await inner.create(thingType, { ...KEY, finalizers: ['a/b', 'c/d'], spec: { value: 1 } })
    const { uid } = metadata
    await inner.delete(thingType, KEY, { uid })
    seen.object = await store.patch(thingType, KEY, { metadata: { finalizers: ['a/b'] } }, { uid })
    assert.deepEqual(await view.certain(KEY), seen.object)
    await store.patch(thingType, KEY, { metadata: { finalizers: [] } }, { uid })
    assert.equal(await view.certain(KEY), undefined)
  })

  it('leaves other kinds alone, whose notes nobody would take away', async () => {
    const { view, store } = await setUp()
    const before = view.size
    await store.create(OTHER, { ...KEY, name: 'two', spec: { value: 1 } })
    assert.equal(view.size, before)
  })

  it('has the store asked after an error that may have been a write', async () => {
    const { view, inner, store, uid } = await setUp()
    const failing = notingStore(
      { ...inner, patch: () => Promise.reject(new StoreError('Unavailable', 'no answer')) },
      view,
      thingType,
    )
    const { metadata } = await inner.patch(thingType, KEY, { spec: { value: 2 } }, { uid })
    await assert.rejects(failing.patch(thingType, KEY, { spec: { value: 2 } }, { uid }))
    assert.equal((await view.certain(KEY))?.metadata.resourceVersion, metadata.resourceVersion)
    assert.ok(store !== inner)
  })
})
