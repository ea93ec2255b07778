/** What every ResourceStore does; each adapter's test file runs it. Results are checked through the port alone. */
import assert from 'node:assert/strict'
import { keyOf } from '../../lib/model/resource.ts'
import type { ResourceStore } from './resource-store.ts'
import { type ResourceStoreFixture, rejectsWith, uidOf } from './resource-store-fixture.contract.ts'
import { describeWatch } from './resource-store-watch.contract.ts'
import { isStoreError } from './store-error.ts'
import { FINALIZER, newWidget, type Widget, widgets } from './widget.contract.ts'

const FOREIGN_UID = '00000000-0000-4000-8000-000000000000'

/** Describes an adapter; `makeFixture` is called once. */
export const describeResourceStore = (name: string, makeFixture: () => Promise<ResourceStoreFixture>): void => {
  describe(`${name} as a ResourceStore`, () => {
    let fixture: ResourceStoreFixture
    let store: ResourceStore
    let other: ResourceStore
    let ns: string
    let serial = 0
    before(async () => {
      fixture = await makeFixture()
      store = await fixture.connect('first')
      other = await fixture.connect('second')
      ns = await fixture.namespace()
    })

    it('has one identity for every client', async () => {
      const identity = await store.identity()
      assert.ok(identity.length > 0)
      assert.equal(await other.identity(), identity)
      assert.equal(await store.identity(), identity)
    })
    after(async () => fixture.close())

    const create = async (
      spec: Widget['spec'] = {},
      rest: Parameters<typeof newWidget>[3] = {},
      namespace = ns,
    ): Promise<Widget> => store.create(widgets, newWidget(namespace, `w${++serial}`, spec, rest))
    const read = async (widget: Widget): Promise<Widget | undefined> => store.get(widgets, keyOf(widget))
    const boundTo = ({ metadata: { uid, resourceVersion } }: Widget): { uid: string; resourceVersion: string } => ({
      uid,
      resourceVersion,
    })

    describe('create', () => {
      it('answers the object with uid, generation 1, version and time, as get then does', async () => {
        const given = newWidget(ns, `w${++serial}`, { size: 3 }, { labels: { a: 'b' }, annotations: { 'x/y': 'z' } })
        const made = await store.create(widgets, { ...given, finalizers: [FINALIZER] })
        assert.match(made.metadata.uid, /^[0-9a-f-]{36}$/)
        assert.match(made.metadata.resourceVersion, /^\d+$/)
        assert.ok(Math.abs(Date.parse(made.metadata.creationTimestamp) - Date.now()) < 60_000)
        const { uid, resourceVersion, creationTimestamp } = made.metadata
        assert.deepEqual(made, {
          apiVersion: 'contract.svc.internal/v1',
          kind: 'Widget',
          metadata: {
            name: given.name,
            namespace: ns,
            uid,
            resourceVersion,
            creationTimestamp,
            generation: 1,
            labels: { a: 'b' },
            annotations: { 'x/y': 'z' },
            finalizers: [FINALIZER],
            ownerReferences: [],
            lastManager: 'first',
          },
          spec: { color: 'grey', size: 3 },
        })
        assert.deepEqual(await other.get(widgets, keyOf(made)), made)
      })

      it('refuses a name that is taken, and a name is free again in another namespace', async () => {
        const made = await create()
        await rejectsWith(other.create(widgets, newWidget(ns, made.metadata.name)), 'AlreadyExists')
        await other.create(widgets, newWidget(await fixture.namespace(), made.metadata.name))
        assert.deepEqual(await read(made), made)
      })

      it('lets exactly one of eight creations of a name win', async () => {
        const given = newWidget(ns, `w${++serial}`)
        const results = await Promise.allSettled(
          Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? store : other).create(widgets, given)),
        )
        assert.equal(results.filter(result => result.status === 'fulfilled').length, 1)
        for (const result of results)
          if (result.status === 'rejected') assert.ok(isStoreError(result.reason, 'AlreadyExists'))
      })

      it('fills defaults, drops unknown fields and names the field that a rule refuses', async () => {
        const made = await create({ color: 'red', unknown: 1 } as Widget['spec'])
        assert.deepEqual(made.spec, { color: 'red' })
        await assert.rejects(
          create({ size: 11 }),
          (error: unknown) =>
            isStoreError(error, 'Invalid') && error.violations.some(violation => violation.field === 'spec.size'),
        )
      })

      for (const [what, given] of [
        ['a name with capitals', { name: 'Widget' }],
        ['a label value of 64 characters', { labels: { a: 'x'.repeat(64) } }],
        ['a label key with two slashes', { labels: { 'a/b/c': 'x' } }],
        ['a finalizer without a prefix', { finalizers: ['hold me'] }],
      ] as const)
        it(`refuses ${what}`, async () => {
          await rejectsWith(store.create(widgets, { ...newWidget(ns, `w${++serial}`), ...given }), 'Invalid')
        })
    })

    describe('get and list', () => {
      it('get answers undefined for what is not there', async () => {
        assert.equal(await store.get(widgets, { namespace: ns, name: 'nobody' }), undefined)
      })

      it('list narrows by namespace and by labels, which must all be equal', async () => {
        const here = await fixture.namespace()
        const labelled = (labels: Record<string, string>): Promise<Widget> => create({}, { labels }, here)
        const [both, one, none] = [await labelled({ k: 'v', l: 'm' }), await labelled({ k: 'v' }), await labelled({})]
        const found = async (labels?: Record<string, string>): Promise<readonly Widget[]> =>
          (await store.list(widgets, { namespace: here, ...(labels === undefined ? {} : { labels }) })).items
        assert.deepEqual(await found(), [both, one, none])
        assert.deepEqual(await found({ k: 'v' }), [both, one])
        assert.deepEqual(await found({ k: 'v', l: 'm' }), [both])
        assert.deepEqual(await found({ k: 'other' }), [])
        const everywhere = (await store.list(widgets)).items.map(widget => widget.metadata.uid)
        assert.ok(everywhere.includes(both.metadata.uid) && everywhere.length > 3)
        const anywhere = (await store.list(widgets, { labels: { l: 'm' } })).items
        assert.deepEqual(anywhere, [both])
      })

      it('an empty list has a version to watch from too', async () => {
        const list = await store.list(widgets, { namespace: await fixture.namespace() })
        assert.deepEqual(list.items, [])
        assert.match(list.resourceVersion, /^\d+$/)
      })
    })

    describe('patch', () => {
      it('merges objects, replaces lists, removes what is null and keeps the rest', async () => {
        const made = await create({ color: 'red', size: 1, parts: ['a', 'b'], box: { width: 1, height: 2 } })
        const spec = { size: 2, parts: ['c'], box: { height: null, width: 3 }, color: null }
        const patched = await store.patch(widgets, keyOf(made), { spec }, uidOf(made))
        // color: removed, then defaulted again
        assert.deepEqual(patched.spec, { color: 'grey', size: 2, parts: ['c'], box: { width: 3 } })
        assert.deepEqual(await read(made), patched)
      })

      it('takes from preconditions what they are, though a whole metadata be given for them', async () => {
        const made = await create({ color: 'red' }, { labels: { kept: 'old' } })
        const metadata = { labels: { kept: 'new' }, finalizers: [FINALIZER] }
        const patched = await store.patch(widgets, keyOf(made), { metadata }, made.metadata)
        assert.deepEqual([patched.metadata.labels, patched.metadata.finalizers], [{ kept: 'new' }, [FINALIZER]])
        const told = await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, patched.metadata)
        await store.delete(widgets, keyOf(made), told.metadata)
        assert.ok((await read(made))?.metadata.deletionTimestamp !== undefined)
        await store.patch(widgets, keyOf(made), { metadata: { finalizers: [] } }, uidOf(made))
      })

      it('raises the generation and names the client when the spec changes', async () => {
        const made = await create()
        const patched = await other.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
        assert.equal(patched.metadata.generation, 2)
        assert.equal(patched.metadata.lastManager, 'second')
        assert.ok(BigInt(patched.metadata.resourceVersion) > BigInt(made.metadata.resourceVersion))
      })

      it('leaves the generation and lastManager when only metadata changes; null removes a label', async () => {
        const made = await create({}, { labels: { keep: '1', drop: '2' } })
        const metadata = { labels: { drop: null, add: '3' }, annotations: { note: 'x' } }
        const patched = await other.patch(widgets, keyOf(made), { metadata }, uidOf(made))
        assert.deepEqual(patched.metadata.labels, { keep: '1', add: '3' })
        assert.deepEqual(patched.metadata.annotations, { note: 'x' })
        assert.equal(patched.metadata.generation, 1)
        assert.equal(patched.metadata.lastManager, 'first')
        assert.notEqual(patched.metadata.resourceVersion, made.metadata.resourceVersion)
      })

      it('writes nothing when nothing changes', async () => {
        const made = await create({ size: 1, box: { width: 1 } }, { labels: { a: 'b' }, finalizers: [FINALIZER] })
        const same = { spec: { size: 1, box: { width: 1 }, serial: null }, metadata: { labels: { a: 'b', c: null } } }
        for (const patch of [same, {}, { spec: {} }, { metadata: { finalizers: [FINALIZER] } }])
          assert.deepEqual(await other.patch(widgets, keyOf(made), patch, uidOf(made)), made)
        assert.deepEqual(await read(made), made)
        await store.delete(widgets, keyOf(made), uidOf(made))
      })

      it('refuses a stale version, a foreign uid, an absent object and what a rule forbids, and changes nothing', async () => {
        const made = await create({ serial: 'one' })
        const patch = { spec: { size: 1 } }
        const latest = await store.patch(widgets, keyOf(made), patch, boundTo(made))
        await rejectsWith(store.patch(widgets, keyOf(made), { spec: { size: 2 } }, boundTo(made)), 'Conflict')
        await rejectsWith(store.patch(widgets, keyOf(made), { spec: { size: 2 } }, { uid: FOREIGN_UID }), 'Invalid')
        await rejectsWith(store.patch(widgets, { namespace: ns, name: 'nobody' }, patch, uidOf(made)), 'NotFound')
        await rejectsWith(store.patch(widgets, keyOf(made), { spec: { serial: 'two' } }, uidOf(made)), 'Invalid')
        await rejectsWith(
          store.patch(widgets, keyOf(made), { metadata: { labels: { a: '!' } } }, uidOf(made)),
          'Invalid',
        )
        assert.deepEqual(await read(made), latest)
      })

      it('applies all of many concurrent patches of different fields', async () => {
        const made = await create()
        const keys = Array.from({ length: 12 }, (_, n) => `k${n}`)
        await Promise.all(
          keys.map((key, n) =>
            (n % 2 === 0 ? store : other).patch(
              widgets,
              keyOf(made),
              { metadata: { labels: { [key]: 'x' } } },
              uidOf(made),
            ),
          ),
        )
        assert.deepEqual(Object.keys((await read(made))!.metadata.labels).sort(), [...keys].sort())
      })

      it('lets exactly one of several patches bound to the same version win', async () => {
        const made = await create()
        const results = await Promise.allSettled(
          Array.from({ length: 6 }, (_, n) =>
            store.patch(widgets, keyOf(made), { spec: { size: n + 1 } }, boundTo(made)),
          ),
        )
        const won = results.filter(result => result.status === 'fulfilled')
        assert.equal(won.length, 1)
        for (const result of results)
          if (result.status === 'rejected') assert.ok(isStoreError(result.reason, 'Conflict'))
        assert.deepEqual(await read(made), won[0]!.value)
      })
    })

    describe('patchStatus', () => {
      it('merges into the status and moves neither generation nor spec nor lastManager', async () => {
        const made = await create({ size: 1 })
        await other.patchStatus(widgets, keyOf(made), { phase: 'a', seen: { times: 1, by: 'x' } }, uidOf(made))
        const patch = { seen: { times: 2, by: null }, notes: ['n'] }
        const patched = await other.patchStatus(widgets, keyOf(made), patch, uidOf(made))
        assert.deepEqual(patched.status, { phase: 'a', seen: { times: 2 }, notes: ['n'] })
        assert.deepEqual(patched.spec, made.spec)
        assert.equal(patched.metadata.generation, 1)
        assert.equal(patched.metadata.lastManager, 'first')
        assert.deepEqual(await read(made), patched)
      })

      it('writes nothing when nothing changes', async () => {
        const made = await create()
        const first = await store.patchStatus(widgets, keyOf(made), { phase: 'a', notes: ['n'] }, uidOf(made))
        const again = await store.patchStatus(widgets, keyOf(made), { notes: ['n'], phase: 'a' }, uidOf(made))
        assert.deepEqual(again, first)
        assert.deepEqual(await read(made), first)
      })

      it('survives a spec patch, and a spec patch survives it', async () => {
        const made = await create()
        await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, uidOf(made))
        const patched = await store.patch(widgets, keyOf(made), { spec: { size: 4 } }, uidOf(made))
        assert.deepEqual([patched.spec.size, patched.status], [4, { phase: 'a' }])
      })

      it('refuses a stale version, a foreign uid, an absent object and what a rule forbids', async () => {
        const made = await create()
        const latest = await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, boundTo(made))
        const refused = (status: object, bound: { uid: string; resourceVersion?: string }): Promise<unknown> =>
          store.patchStatus(widgets, keyOf(made), { ...status }, bound)
        await rejectsWith(refused({ phase: 'b' }, boundTo(made)), 'Conflict')
        await rejectsWith(refused({ phase: 'b' }, { uid: FOREIGN_UID }), 'Invalid')
        await rejectsWith(refused({ phase: 'impossible' }, uidOf(made)), 'Invalid')
        await rejectsWith(store.patchStatus(widgets, { namespace: ns, name: 'no' }, {}, uidOf(made)), 'NotFound')
        assert.deepEqual(await read(made), latest)
      })
    })

    describe('delete', () => {
      it('removes an object without finalizers; a new one of its name has another uid', async () => {
        const made = await create()
        await store.delete(widgets, keyOf(made), uidOf(made))
        assert.equal(await read(made), undefined)
        await rejectsWith(store.delete(widgets, keyOf(made), uidOf(made)), 'NotFound')
        const again = await store.create(widgets, newWidget(ns, made.metadata.name))
        assert.notEqual(again.metadata.uid, made.metadata.uid)
        assert.equal(again.metadata.generation, 1)
      })

      it('with finalizers sets deletionTimestamp and raises the generation; repeating it is harmless', async () => {
        const made = await create({}, { finalizers: [FINALIZER] })
        await store.delete(widgets, keyOf(made), uidOf(made))
        const deleting = (await read(made))!
        assert.ok(Math.abs(Date.parse(deleting.metadata.deletionTimestamp ?? '') - Date.now()) < 60_000)
        assert.equal(deleting.metadata.generation, 2)
        assert.deepEqual(deleting.spec, made.spec)
        await other.delete(widgets, keyOf(made), uidOf(made))
        assert.deepEqual(await read(made), deleting)
        await rejectsWith(store.create(widgets, newWidget(ns, made.metadata.name)), 'AlreadyExists')
      })

      it('while deleting, spec and status may be patched, a finalizer may not be added', async () => {
        const made = await create({}, { finalizers: [FINALIZER] })
        await store.delete(widgets, keyOf(made), uidOf(made))
        const patched = await store.patch(widgets, keyOf(made), { spec: { size: 2 } }, uidOf(made))
        assert.equal(patched.metadata.generation, 3)
        const told = await store.patchStatus(widgets, keyOf(made), { phase: 'going' }, uidOf(made))
        const finalizers = [FINALIZER, 'contract.svc.internal/more']
        await rejectsWith(store.patch(widgets, keyOf(made), { metadata: { finalizers } }, uidOf(made)), 'Invalid')
        assert.deepEqual(await read(made), told)
      })

      it('goes when the last finalizer does, not before', async () => {
        const second = 'contract.svc.internal/second'
        const made = await create({}, { finalizers: [FINALIZER, second] })
        await store.delete(widgets, keyOf(made), uidOf(made))
        await store.patch(widgets, keyOf(made), { metadata: { finalizers: [second] } }, uidOf(made))
        assert.deepEqual((await read(made))!.metadata.finalizers, [second])
        const gone = await store.patch(widgets, keyOf(made), { metadata: { finalizers: [] } }, uidOf(made))
        assert.deepEqual(gone.metadata.finalizers, [])
        assert.equal(await read(made), undefined)
      })

      it('refuses a foreign uid and a stale version with Conflict, also when deleting', async () => {
        const made = await create({}, { finalizers: [FINALIZER] })
        const latest = await store.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
        for (const _ of ['before', 'while deleting']) {
          await rejectsWith(store.delete(widgets, keyOf(made), { uid: FOREIGN_UID }), 'Conflict')
          await rejectsWith(store.delete(widgets, keyOf(made), boundTo(made)), 'Conflict')
          assert.deepEqual({ ...(await read(made))!, metadata: undefined }, { ...latest, metadata: undefined })
          await store.delete(widgets, keyOf(made), uidOf(made))
        }
      })

      it('is Forbidden while the object is guarded, and nothing happens when the guard is lifted', async () => {
        const made = await create({ guarded: true })
        await rejectsWith(store.delete(widgets, keyOf(made), uidOf(made)), 'Forbidden')
        assert.deepEqual(await read(made), made)
        const lifted = await store.patch(widgets, keyOf(made), { spec: { guarded: false } }, uidOf(made))
        assert.equal(lifted.metadata.deletionTimestamp, undefined)
        await store.delete(widgets, keyOf(made), uidOf(made))
        assert.equal(await read(made), undefined)
      })
    })

    describeWatch(() => fixture)
  })
}
