/** A preview, its clock, renewals, protection and crashes: it is never swept early, and whoever saves it in time wins. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Died } from '../../testkit/counting-ports.ts'
import { sized } from '../../testkit/full.ts'
import { CREATED_MS } from '../../testkit/gen.ts'
import { operatorWorld } from '../../testkit/operator-world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

type Step =
  | { readonly do: 'look'; readonly dieAfter: number | undefined }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'renew'; readonly hours: number }
  | { readonly do: 'protect'; readonly on: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('look' as const),
    dieAfter: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 90 * MINUTE }) }),
  fc.record({ do: fc.constant('renew' as const), hours: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('protect' as const), on: fc.boolean() }),
)

describe('a preview and its expiry', () => {
  it('is swept a minute after the last expiry, never before, and never within a minute of its protection', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
        const world = operatorWorld()
        const key = await world.create({ kind: 'preview', ttlHours: 1 })
        await world.settle(key)
        let expiresAtMs = CREATED_MS + HOUR
        let isProtected = false
        /** When it was protected last. */
        let protectedMs = -Infinity
        const isAsked = async (): Promise<boolean> =>
          (await world.get(key))?.metadata.deletionTimestamp !== undefined || (await world.get(key)) === undefined
        for (const each of steps) {
          if (each.do === 'pass') world.pass(each.ms)
          if (each.do === 'renew' && !(await isAsked())) {
            // The store took it: from now on nothing older counts, whatever its condition says.
            expiresAtMs = Math.max(expiresAtMs, world.now() + each.hours * HOUR)
            await world.edit(key, { expiresAt: new Date(expiresAtMs).toISOString() })
          }
          if (each.do === 'protect' && !(await isAsked())) {
            if (isProtected) protectedMs = world.now()
            isProtected = each.on
            await world.edit(key, { deletionProtection: isProtected })
          }
          if (each.do !== 'look' || (await isAsked())) continue
          world.restart(each.dieAfter)
          await world.reconcile(key).catch((error: unknown) => {
            if (!(error instanceof Died)) throw error
            world.restart()
          })
          if (!(await isAsked())) continue
          assert.ok(!isProtected, 'swept although protected')
          assert.ok(world.now() >= expiresAtMs + MINUTE, 'swept before its time')
          assert.ok(world.now() >= protectedMs + MINUTE, 'swept as soon as its protection was lifted')
        }
        world.restart()
        if (isProtected) await world.edit(key, { deletionProtection: false })
        world.pass(Math.max(0, expiresAtMs + MINUTE - world.now()))
        await world.settle(key)
        world.pass(MINUTE)
        assert.equal(await world.settle(key), undefined)
        assert.deepEqual(
          (await world.records()).map(({ spec }) => spec.cause),
          ['ttl'],
        )
      }),
      { numRuns: sized(200, 3_000) },
    )
  }).timeout(120_000)
})
