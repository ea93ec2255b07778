import assert from 'node:assert/strict'
import { memoryStore } from '../../testkit/memory-store.ts'
import { thingType } from '../../testkit/unreliable-store.ts'
import { StoreError } from '../store/store-error.ts'
import { ConsistencyGate } from './consistency-gate.ts'
import { notingStore } from './noting-store.ts'

const KEY = { namespace: 'ns', name: 'one' }
const OTHER = { ...thingType, kind: 'Other' }

const setUp = async () => {
  const gate = new ConsistencyGate()
  const inner = memoryStore(() => 0)
  const store = notingStore(inner, gate, thingType)
  const made = await store.create(thingType, { ...KEY, spec: { value: 1 } })
  const verdict = (seen: string): unknown => gate.judge(thingType.kind, KEY, seen)
  return { gate, inner, store, uid: made.metadata.uid, made, verdict }
}

describe('notingStore', () => {
  it('notes what every write of its kind came to', async () => {
    const { store, uid, made, verdict } = await setUp()
    assert.notEqual(verdict('0'), 'open')
    const patched = await store.patch(thingType, KEY, { spec: { value: 2 } }, { uid })
    assert.notEqual(verdict(made.metadata.resourceVersion), 'open')
    const status = await store.patchStatus(thingType, KEY, { seen: true }, { uid })
    assert.notEqual(verdict(patched.metadata.resourceVersion), 'open')
    assert.equal(verdict(status.metadata.resourceVersion), 'open')
    await store.delete(thingType, KEY, { uid })
    assert.equal(verdict('999'), 'ask')
  })

  it('leaves other kinds alone, whose notes nobody would take away', async () => {
    const { gate, store } = await setUp()
    const before = gate.size
    await store.create(OTHER, { ...KEY, spec: { value: 1 } })
    assert.equal(gate.size, before)
  })

  it('has the store asked after an error that may have been a write, and not after a clear no', async () => {
    const { gate, inner, made, verdict } = await setUp()
    const { uid, resourceVersion } = made.metadata
    assert.equal(verdict(resourceVersion), 'open')
    const failing = (error: Error) => notingStore({ ...inner, patch: () => Promise.reject(error) }, gate, thingType)
    const patch = { spec: { value: 2 } }
    await assert.rejects(failing(new StoreError('Conflict', 'no')).patch(thingType, KEY, patch, { uid }))
    assert.equal(verdict(resourceVersion), 'open')
    await assert.rejects(failing(new StoreError('Unavailable', 'no answer')).patch(thingType, KEY, patch, { uid }))
    assert.equal(verdict(resourceVersion), 'ask')
  })
})
