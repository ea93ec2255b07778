import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import { Cache } from '../../runtime/controller/cache.ts'
import { Reflector } from '../../runtime/controller/reflector.ts'
import { silentLog } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { type CallCounter, callCounter, countingStore } from '../../testkit/counting-ports.ts'
import type { OpenPlace } from '../../testkit/dispatch-places.ts'
import { DispatchWorld, eventually, keyOfEnvironment, USER } from '../../testkit/dispatch-world.ts'
import { sized } from '../../testkit/full.ts'
import { startStandinOperator } from '../../testkit/standin-operator.ts'
import type { ControlPlaneSql } from '../store/fenced-transactions.ts'
import type { DispatchAndProjection } from './start-dispatch-and-projection.ts'

/** What is done to an environment between its create and its delete. */
type Step = 'suspend' | 'resume' | 'protect' | 'unprotect' | 'edit'

/** How it ends: through the API, or by kubectl. */
type Ending = 'delete' | 'vanish'

/** By how much each raises the generation: once for our own change, or twice it was done twice. */
const RAISES: Readonly<Record<Step | 'create' | Ending, number>> = {
  create: 1,
  suspend: 1,
  resume: 1,
  protect: 1,
  unprotect: 1,
  edit: 1,
  delete: 2, // says who asks, and begins
  vanish: 1,
}

const countingDatabase = (database: ControlPlaneSql, counter: CallCounter): ControlPlaneSql => ({
  rows: (text, values) => counter.read(() => database.rows(text, values)),
  row: (text, values) => counter.read(() => database.row(text, values)),
  transaction: work => counter.count('transaction', () => database.transaction(work)),
})

/** Several replicas: nothing is done twice, nothing is lost. */
export const describeReplicas = (where: string, openPlace: OpenPlace): void => {
  describe(`dispatch and projection by replicas that die or take turns, ${where}`, () => {
    let world: DispatchWorld
    let kubectl: ResourceStore
    const generations = new Map<string, number>()
    let edits = 0

    before(async () => {
      world = await DispatchWorld.create(openPlace)
      kubectl = world.client('kubectl')
      const operator = startStandinOperator(world.client('svc-operator'))
      world.onClose(() => operator.stop())
      const cache = new Cache<Environment>({ log: silentLog })
      cache.subscribe(({ object: { metadata } }) => {
        generations.set(metadata.name, Math.max(metadata.generation, generations.get(metadata.name) ?? 0))
      })
      const reflector = new Reflector({ store: kubectl, type: environmentType, sink: cache, log: silentLog })
      reflector.start()
      world.onClose(() => reflector.stop())
    })
    after(() => world.close())

    /** Lives a life through the API and kubectl, waiting for each step as callers must. */
    const live = async (id: string, steps: readonly Step[], ending: Ending, wake: () => void): Promise<void> => {
      const done = (count: number) =>
        world.until(id, ({ operations }) => operations.length === count && operations.at(-1)?.state === 'succeeded')
      let operations = 1
      await world.requestCreate(id)
      wake()
      await done(operations)
      for (const step of steps) {
        if (step === 'suspend' || step === 'resume') {
          await world.request(id, step)
          wake()
          await done(++operations)
        } else if (step === 'edit') {
          const resource = await world.resource(kubectl, id)
          assert.ok(resource)
          const patch = { spec: { image: `postgres:17-${++edits}` } }
          await kubectl.patch(environmentType, keyOfEnvironment(id), patch, { uid: resource.metadata.uid })
        } else {
          await world.requestUpdate(id, step === 'protect')
          wake()
        }
      }
      if (steps.findLast(step => step === 'protect' || step === 'unprotect') === 'protect')
        await world.requestUpdate(id, false)
      if (ending === 'delete') await world.request(id, 'delete')
      else await deleteByHand(id)
      wake()
      await done(operations + 1)
      await eventually(
        () => world.resource(kubectl, id),
        seen => seen === undefined,
        `${id} gone`,
      )
    }

    /** Once nothing protects it any more: an update may still be on its way. */
    const deleteByHand = async (id: string): Promise<void> => {
      const resource = await eventually(
        () => world.resource(kubectl, id),
        seen => seen?.spec.deletionProtection !== true && Number(seen?.metadata.annotations[ANNOTATIONS.intent]) >= 1,
        `${id} unprotected`,
      )
      assert.ok(resource)
      await eventually(
        () =>
          world.database.rows(
            `select from intents i join environments e on e.id = i.environment_row
        where e.environment_id = $1 and i.state = 'pending'`,
            [id],
          ),
        waiting => waiting.length === 0,
        `${id} carried`,
      )
      await kubectl.delete(environmentType, keyOfEnvironment(id), { uid: resource.metadata.uid })
    }

    /** Steps that change something each: what is protected already is not protected again. */
    const meaningful = (steps: readonly Step[]): readonly Step[] => {
      let isProtected = false
      return steps.filter(step => {
        if (step !== 'protect' && step !== 'unprotect') return true
        if (isProtected === (step === 'protect')) return false
        isProtected = !isProtected
        return true
      })
    }

    const assertDoneOnce = async (id: string, steps: readonly Step[], ending: Ending): Promise<void> => {
      const lifts = steps.findLast(step => step === 'protect' || step === 'unprotect') === 'protect' ? 1 : 0
      const expected = ['create' as const, ...steps, ending].reduce((sum, step) => sum + RAISES[step], lifts)
      const { name } = keyOfEnvironment(id)
      await eventually(
        async () => generations.get(name) ?? 0,
        seen => seen >= expected,
        `${id} at generation ${expected}`,
      )
      assert.equal(generations.get(name), expected, `${id}: ${steps.join()}`)
      const rows = await world.rows(id)
      const asked = ['create', ...steps.filter(step => step === 'suspend' || step === 'resume'), 'delete']
      assert.deepEqual(
        rows.operations.map(({ kind, state }) => `${kind} ${state}`),
        asked.map(verb => `${verb}_environment succeeded`),
      )
      assert.equal(rows.phase, 'deleted')
      assert.equal(rows.operations.at(-1)?.actor, ending === 'delete' ? USER : world.deleterActor('kubectl'))
      // An edit that was overwritten or ended before anybody looked was never seen; none is told twice.
      const all = (await world.audit()).filter(({ resource }) => resource === `shop/${id}`)
      const changes = all.filter(({ action }) => action === 'update_environment')
      assert.equal(changes.length, steps.filter(step => step === 'protect' || step === 'unprotect').length + lifts)
      const events = all.filter(event => !changes.includes(event))
      const ends = events.filter(({ action }) => action === 'delete_environment')
      assert.deepEqual(
        ends.map(({ actor }) => actor),
        ending === 'delete' ? [] : [world.deleterActor('kubectl')],
      )
      const seen = events.filter(event => !ends.includes(event))
      assert.ok(
        seen.every(({ action, metadata }) => action === 'external_change' && String(metadata['fields']) === 'image'),
      )
      const stated = seen.map(({ metadata }) => JSON.stringify((metadata as { generation: unknown }).generation))
      assert.equal(new Set(stated).size, stated.length)
      assert.ok(seen.length <= steps.filter(step => step === 'edit').length)
      const left = await world.database.rows(
        `select i.verb, i.state from intents i join environments e on e.id = i.environment_row
        where e.environment_id = $1 and i.state <> 'dispatched'`,
        [id],
      )
      assert.deepEqual(left, [])
    }

    const LIFE: readonly Step[] = ['suspend', 'edit', 'resume', 'protect', 'unprotect']

    /** Lives a life with a replica that dies after so many mutating calls, and is followed by one that does not. */
    const liveWithDeath = async (
      id: string,
      ending: Ending,
      dieAfter: number | undefined,
    ): Promise<readonly string[]> => {
      const died = Promise.withResolvers<undefined>()
      const counter = callCounter({ dieAfter, onDeath: () => died.resolve(undefined) })
      let current: DispatchAndProjection = world.replica({
        store: countingStore(world.client('svc-apiserver'), counter),
        database: countingDatabase(world.database, counter),
      })
      const followed = died.promise.then(async () => {
        await current.stop()
        current = world.replica()
      })
      await live(id, LIFE, ending, () => current.wake())
      await eventually(
        () => world.deletionRecords(kubectl),
        records => records.length === 0,
        'record folded',
      )
      if (dieAfter !== undefined && counter.calls.length >= dieAfter) await followed
      await current.stop()
      await assertDoneOnce(id, LIFE, ending)
      return counter.calls
    }

    for (const ending of ['delete', 'vanish'] as const)
      it(`ends like an undisturbed run when the process dies after any write of a life that ends by ${ending}`, async function () {
        this.timeout(sized(60_000, 300_000))
        const steps = await liveWithDeath(`undisturbed-${ending}`, ending, undefined)
        assert.ok(steps.includes('store.delete DeletionRecord'))
        const stride = sized(Math.ceil(steps.length / 4), 1)
        // Other ones in each run of the small size.
        const offset = Math.floor(Math.random() * stride)
        for (let dieAfter = 1 + offset; dieAfter <= steps.length; dieAfter += stride)
          await liveWithDeath(`${ending}-${dieAfter}`, ending, dieAfter)
      })

    it('does nothing twice while the lease moves between two that both work', async function () {
      this.timeout(sized(60_000, 300_000))
      const step = fc.constantFrom<Step>('suspend', 'resume', 'protect', 'unprotect', 'edit')
      const life = fc.record({
        steps: fc.array(step, { maxLength: 5 }).map(meaningful),
        ending: fc.constantFrom<Ending>('delete', 'vanish'),
      })
      const lives = fc.array(life, { minLength: 3, maxLength: 4 })
      let run = 0
      let moves = 0
      await fc.assert(
        fc.asyncProperty(lives, fc.infiniteStream(fc.integer({ min: 5, max: 150 })), async (plans, pauses) => {
          run += 1
          // The former holder hears of its loss late, and works on meanwhile as well as it can.
          const config = { leaseRenewEveryMs: 400, leasePollEveryMs: 10 }
          const replicas = [world.replica({ config }), world.replica({ config })]
          const over = new AbortController()
          const mover = (async () => {
            for (const pause of pauses) {
              await sleep(pause, undefined, { signal: over.signal }).catch(() => undefined)
              if (over.signal.aborted) return
              await world.database.transaction(sql => sql.rows(`update leases set expires_at = '-infinity'`))
              moves += 1
            }
          })()
          const ids = plans.map((_, index) => `life-${run}-${index}`)
          try {
            const wake = (): void => replicas.forEach(replica => replica.wake())
            await Promise.all(plans.map(({ steps, ending }, index) => live(ids[index]!, steps, ending, wake)))
          } finally {
            over.abort()
            await mover
            await Promise.all(replicas.map(replica => replica.stop()))
          }
          for (const [index, { steps, ending }] of plans.entries()) await assertDoneOnce(ids[index]!, steps, ending)
        }),
        { numRuns: sized(3, 60) },
      )
      assert.ok(moves > run, `${moves} moves in ${run} runs`)
    })
  })
}
