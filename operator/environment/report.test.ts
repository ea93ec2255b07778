import assert from 'node:assert/strict'
import fc from 'fast-check'
import { environmentType } from '../../crds/environment-type.ts'
import { mergePatch as applied } from '../../runtime/store/merge-patch.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { sized } from '../../testkit/full.ts'
import { environment, everReady, inPhase, metadata, status } from '../../testkit/gen.ts'
import { memoryStore } from '../../testkit/memory-store.ts'
import { mergePatch, report } from './report.ts'

describe('mergePatch', () => {
  it('removes what is gone, also inside', () => {
    const patch = mergePatch({ a: 1, b: { c: 1, d: 2 }, e: [1, 2] }, { b: { c: 1 }, e: [1] })
    assert.deepEqual(patch, { a: null, b: { d: null }, e: [1] })
  })

  it('is nothing between equals, and leads from any object to any other', () => {
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }))
    const object = fc.dictionary(
      fc.constantFrom('a', 'b', 'c'),
      fc.oneof(leaf, fc.dictionary(fc.constantFrom('x', 'y'), leaf, { noNullPrototype: true })),
      { noNullPrototype: true },
    )
    fc.assert(
      fc.property(object, object, (from, to) => {
        assert.equal(mergePatch(from, from), undefined)
        assert.deepEqual({ ...(applied(from, mergePatch(from, to) ?? {}) as object) }, { ...to })
      }),
      { numRuns: sized(300, 5_000) },
    )
  })
})

describe('report', () => {
  const stored = async () => {
    const store = memoryStore(() => 0)
    const { metadata: named, spec } = environment()
    return { store, made: await store.create(environmentType, { name: named.name, namespace: 'ns', spec }) }
  }

  it('writes a status once and then not again', async () => {
    const { store, made } = await stored()
    const wanted = environment(inPhase('ready'), everReady).status!
    const first = await report(store, made, wanted)
    const writes = store.writes()
    const second = await report(store, first, wanted)
    assert.equal(store.writes(), writes)
    assert.deepEqual(second.status, wanted)
  })

  it('refuses a status that was decided on an older version', async () => {
    const { store, made } = await stored()
    await report(store, made, { phase: 'provisioning' })
    await assert.rejects(report(store, made, { phase: 'ready' }), error => isStoreError(error, 'Conflict'))
  })

  it('goes on beside others who write all the time what counts for no decision, and stops at what does', async () => {
    const { store, made } = await stored()
    const key = { namespace: 'ns', name: made.metadata.name }
    let n = 0
    /** Somebody is always a little faster. */
    const disturbed = (change: () => object, times: number): typeof store => ({
      ...store,
      patchStatus: async (...args) => {
        if (n++ < times) await store.patch(environmentType, key, change(), { uid: made.metadata.uid })
        return store.patchStatus(...args)
      },
    })
    const noise = () => ({ metadata: { annotations: { 'tool.example.com/n': String(n) } } })
    const told = await report(disturbed(noise, 5), made, { phase: 'provisioning' })
    assert.equal(told.status?.phase, 'provisioning')
    assert.equal(told.metadata.annotations['tool.example.com/n'], '5')
    for (const change of [
      { spec: { suspended: true } },
      { metadata: { annotations: { 'svc.internal/paused': 'true' } } },
      { metadata: { finalizers: ['somebody/else'] } },
    ]) {
      const now = (await store.get(environmentType, key))!
      n = 0
      const once = disturbed(() => change, 1)
      await assert.rejects(report(once, now, { phase: 'ready' }), error => isStoreError(error, 'Conflict'))
    }
    // Nobody gets a word in for ever.
    const now = (await store.get(environmentType, key))!
    await assert.rejects(report(disturbed(noise, Infinity), now, { phase: 'ready' }), error =>
      isStoreError(error, 'Conflict'),
    )
  })

  it('takes a message away with the trouble that it told of', async () => {
    const { store, made } = await stored()
    const operation = { id: 'op', seq: 1, outcome: 'running' as const, attempts: 1 }
    const told = await report(
      store,
      made,
      environment(metadata({}), status({ operation: { ...operation, message: 'x' } })).status!,
    )
    const done = await report(store, told, { operation: { ...operation, outcome: 'succeeded' } })
    assert.deepEqual(done.status?.operation, { ...operation, outcome: 'succeeded' })
  })
})
