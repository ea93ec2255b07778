/** The operator dies right after each of its mutating calls in turn: the end is the same as if it had not. */
import assert from 'node:assert/strict'
import type { Environment } from '../../crds/environment.ts'
import { Died } from '../../testkit/counting-ports.ts'
import { operatorWorld } from '../../testkit/operator-world.ts'

/** A status without its times. */
const timeless = (environment: Environment | undefined): unknown => {
  if (environment?.status === undefined) return undefined
  const { phaseTransitionTime: _, conditions = [], ...rest } = environment.status
  return { ...rest, conditions: conditions.map(({ lastTransitionTime: __, ...condition }) => condition) }
}

const life = async (dieAfter: number | undefined, deletionPolicy: 'Retain' | 'Delete') => {
  const world = operatorWorld()
  world.restart(dieAfter)
  let died = false
  const settled = async (): Promise<unknown> => {
    try {
      return timeless(await world.settle(key))
    } catch (error) {
      if (!(error instanceof Died)) throw error
      died = true
      world.restart()
      return timeless(await world.settle(key))
    }
  }
  const request = (seq: number, verb: string) => ({ request: { id: `op_${seq}`, seq, verb } })
  const key = await world.create({ deletionPolicy, request: { id: 'op_1', seq: 1, verb: 'create' } })
  const states: unknown[] = [await settled()]
  const { uid } = (await world.must(key)).metadata
  const { inits } = world.host.instances.get(uid)!
  await world.edit(key, { suspended: true, ...request(2, 'suspend') })
  states.push(await settled())
  await world.edit(key, { suspended: false, ...request(3, 'resume') })
  states.push(await settled())
  await world.edit(key, { resources: { memory: '512Mi' } })
  states.push(await settled())
  await world.edit(key, { credentialsRotation: 'now', ...request(4, 'rotate') })
  states.push(await settled())
  await world.edit(key, request(5, 'delete'))
  await world.remove(key)
  states.push(await settled())
  const records = (await world.records()).map(({ spec }) => [spec.uid === uid, spec.cause, spec.retained])
  const left = [inits, world.host.instances.size, world.credentials.kept.size, world.host.retained.size]
  return { outcome: { states, moves: world.moves, records, left }, calls: world.calls(), died }
}

describe('the operator, dying', () => {
  for (const policy of ['Retain', 'Delete'] as const)
    it(`after every mutating call of a whole life (${policy}) ends in the same state`, async () => {
      const undisturbed = await life(undefined, policy)
      assert.ok(undisturbed.calls.length >= 20, `only ${undisturbed.calls.length} calls`)
      for (const [index, call] of undisturbed.calls.entries()) {
        const disturbed = await life(index + 1, policy)
        assert.ok(disturbed.died, `did not die after ${call}`)
        assert.deepEqual(disturbed.outcome, undisturbed.outcome, `after call ${index + 1}, ${call}`)
      }
    })
})
