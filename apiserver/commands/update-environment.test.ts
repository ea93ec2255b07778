import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { environmentType } from '../../crds/environment-type.ts'
import type { EmbeddedResourceStore } from '../../runtime/embedded/embedded-resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { CarryingWorld } from '../../testkit/carrying-world.ts'
import { bodyOf, type CommandWorld, impatient, pathOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import type { UpdateEnvironmentBody } from '../contract/environments.ts'
import { findOpenOperationAt } from '../store/operations.ts'
import type { Principal } from './call.ts'
import { deleteEnvironment } from './delete-environment.ts'
import type { CommandDependencies } from './dependencies.ts'
import { updateEnvironment } from './update-environment.ts'

describe('updateEnvironment', () => {
  let carrying: CarryingWorld
  let world: CommandWorld
  let deps: CommandDependencies
  /** Everybody else's client of the store. */
  let kubectl: EmbeddedResourceStore
  before(async () => {
    carrying = await CarryingWorld.start()
    ;({ world, deps, kubectl } = carrying)
  })
  beforeEach(() => void (carrying.faults = {}))
  after(() => carrying.stop())

  const update = (
    id: string,
    body: UpdateEnvironmentBody,
    as: Principal = world.owner,
    key?: string,
    by: CommandDependencies = deps,
  ) => updateEnvironment(by, world.call(as, { key, body }), pathOf(id), body)
  const actionsOn = (id: string) => world.actionsOn(`shop/${id}`)

  it('has the store hold what it answers', async () => {
    const id = await carrying.make()
    const record = bodyOf(await update(id, { deletion_protection: true, deletion_policy: 'retain' }))
    assert.deepEqual([record.deletion_protection, record.deletion_policy], [true, 'retain'])
    const { spec, metadata } = await carrying.resourceOf(id)
    assert.deepEqual([spec.deletionProtection, spec.deletionPolicy], [true, 'Retain'])
    assert.equal(metadata.annotations['svc.internal/actor'], world.owner.subject)
    const row = await carrying.rowOf(id)
    assert.deepEqual([row.deletionProtection, row.deletionPolicy], [true, 'Retain'])
    await assert.rejects(deleteEnvironment(deps, world.call(world.owner), pathOf(id)), isCode('deletion_protected'))
    const event = (await world.audit()).at(-1)
    assert.deepEqual([event?.action, event?.metadata['deletion_policy']], ['update_environment', 'retain'])
  })

  it('never acknowledges a protection that loses to the sweep, however far behind the dispatcher is', async () => {
    for (let round = 0; round < sized(5, 60); round++) {
      const id = await carrying.make()
      const { metadata } = await carrying.resourceOf(id)
      const { uid, resourceVersion } = metadata
      let sweeping: Promise<unknown> = Promise.resolve()
      // The operator deletes what it saw unprotected, before or while the change is carried.
      carrying.faults = {
        before: ({ verb }) => {
          if (verb === 'patch' && round % 2 === 0) void sweep()
        },
      }
      const sweep = () =>
        (sweeping = kubectl.delete(environmentType, metadata, { uid, resourceVersion }).catch(() => undefined))
      if (round % 2 === 1) void sweep()
      const [answer] = await Promise.allSettled([update(id, { deletion_protection: true })])
      await sweeping
      const swept = (await carrying.resourceOf(id)).metadata.deletionTimestamp !== undefined
      assert.equal(answer.status === 'fulfilled', !swept, `round ${round}`)
      if (answer.status === 'rejected') isCode('operation_in_progress')(answer.reason)
      assert.equal((await actionsOn(id)).includes('update_environment'), !swept)
    }
  })

  it('sets what the row says already: the resource may say something else by now', async () => {
    const id = await carrying.make({ deletion_protection: true })
    const { metadata } = await carrying.resourceOf(id)
    await kubectl.patch(environmentType, metadata, { spec: { deletionProtection: false } }, { uid: metadata.uid })
    await update(id, { deletion_protection: true })
    assert.equal((await carrying.resourceOf(id)).spec.deletionProtection, true)
  })

  it('happens once for one key, however many come with it at once', async () => {
    const id = await carrying.make()
    const key = randomUUID()
    const replies = await Promise.all(
      [1, 2, 3, 4].map(() => update(id, { deletion_policy: 'retain' }, world.owner, key)),
    )
    assert.equal(new Set(replies.map(reply => JSON.stringify(bodyOf(reply)))).size, 1)
    assert.equal(replies.filter(({ headers }) => headers?.['Idempotency-Replayed'] === 'true').length, 3)
    assert.deepEqual(await actionsOn(id), ['create_environment', 'update_environment'])
    assert.equal((await carrying.resourceOf(id)).metadata.generation, 2)
    await assert.rejects(update(id, { deletion_policy: 'delete' }, world.owner, key), isCode('idempotency_key_reused'))
  })

  describe('while the store is away', () => {
    const away = (): never => {
      throw new StoreError('Unavailable', 'away')
    }

    it('is refused and changes nothing, also later; the key may be used again', async () => {
      const id = await carrying.make()
      await update(id, { deletion_policy: 'delete' })
      const key = randomUUID()
      carrying.faults = { reading: away }
      await assert.rejects(
        update(id, { deletion_protection: true }, world.owner, key, impatient(deps)),
        isCode('store_unavailable'),
      )
      carrying.faults = {}
      await update(id, { deletion_policy: 'retain' })
      assert.equal((await carrying.resourceOf(id)).spec.deletionProtection, false)
      const again = await update(id, { deletion_protection: true }, world.owner, key)
      assert.equal(again.headers?.['Idempotency-Replayed'], undefined)
      assert.equal((await carrying.resourceOf(id)).spec.deletionProtection, true)
    })

    it('and its patch arrived, but not the answer: a repeated call learns of it, and there is one event', async () => {
      const id = await carrying.make()
      const key = randomUUID()
      let patched = false
      carrying.faults = {
        reading: () => (patched ? away() : undefined),
        after: ({ verb }) => {
          patched ||= verb === 'patch'
          if (patched) away()
        },
      }
      await assert.rejects(
        update(id, { deletion_protection: true }, world.owner, key, impatient(deps)),
        isCode('store_unavailable'),
      )
      assert.equal((await carrying.rowOf(id)).deletionProtection, false)
      carrying.faults = {}
      const record = bodyOf(await update(id, { deletion_protection: true }, world.owner, key))
      assert.equal(record.deletion_protection, true)
      assert.equal((await carrying.rowOf(id)).deletionProtection, true)
      assert.deepEqual(await actionsOn(id), ['create_environment', 'update_environment'])
      assert.equal((await carrying.resourceOf(id)).metadata.generation, 2)
    })
  })

  it('may come while an operation is open, but not a deletion', async () => {
    const id = await carrying.make()
    assert.equal((await findOpenOperationAt(world.plane.database, pathOf(id)))?.kind, 'create_environment')
    await update(id, { deletion_policy: 'retain' })
    await deleteEnvironment(deps, world.call(world.owner), pathOf(id))
    const key = randomUUID()
    for (let asked = 0; asked < 2; asked++)
      await assert.rejects(update(id, { deletion_policy: 'delete' }, world.owner, key), isCode('operation_in_progress'))
  })

  it('is refused from a deletion by others on', async () => {
    const id = await carrying.make()
    const { metadata } = await carrying.resourceOf(id)
    await kubectl.delete(environmentType, metadata, { uid: metadata.uid })
    while ((await carrying.rowOf(id)).phase !== 'deleting');
    await assert.rejects(update(id, { deletion_policy: 'retain' }), isCode('operation_in_progress'))
    await kubectl.patch(environmentType, metadata, { metadata: { finalizers: [] } }, { uid: metadata.uid })
    while ((await carrying.rowOf(id)).phase !== 'deleted');
    await assert.rejects(update(id, { deletion_policy: 'retain' }), isCode('invalid_phase', { phase: 'deleted' }))
    assert.deepEqual(await actionsOn(id), ['create_environment', 'delete_environment'])
  })

  it('needs an admin on production, protected project or not', async () => {
    const id = await carrying.make({ kind: 'production' })
    await assert.rejects(
      update(id, { deletion_protection: true }, await world.user('developer')),
      isCode('forbidden', { required_role: 'admin' }),
    )
    await update(id, { deletion_protection: true }, await world.user('admin'))
  })
})
