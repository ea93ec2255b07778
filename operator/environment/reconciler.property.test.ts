/** Random histories: edits, failures, crashes and jumps of the clock. The end is what the last spec demands. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { DELETION_POLICIES, type DeletionPolicy } from '../../lib/model/environment.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import { Died } from '../../testkit/counting-ports.ts'
import { sized } from '../../testkit/full.ts'
import type { RefusableMethod } from '../../testkit/model-host.ts'
import { type OperatorWorld, operatorWorld } from '../../testkit/operator-world.ts'

type Step =
  | {
      readonly do:
        | 'suspend'
        | 'resume'
        | 'kill'
        | 'hang'
        | 'changePassword'
        | 'loseCredentials'
        | 'loseDeletionPolicy'
        | 'restart'
        | 'delete'
    }
  | { readonly do: 'policy'; readonly policy: DeletionPolicy }
  | { readonly do: 'memory'; readonly mebibytes: number }
  | { readonly do: 'look'; readonly times: number }
  | { readonly do: 'dieAfter' | 'failLaunches'; readonly count: number }
  | {
      readonly do: 'refuse'
      readonly method: RefusableMethod
      readonly count: number
    }
  | { readonly do: 'pass'; readonly ms: number }

const REFUSABLE: readonly RefusableMethod[] = ['start', 'stop', 'destroy', 'applyCredentials', 'setDeletionPolicy']

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('look' as const), times: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 6,
    arbitrary: fc.constantFrom<Step>(
      ...(
        [
          'suspend',
          'resume',
          'kill',
          'hang',
          'changePassword',
          'loseCredentials',
          'loseDeletionPolicy',
          'restart',
        ] as const
      ).map(what => ({ do: what })),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('memory' as const), mebibytes: fc.constantFrom(256, 512, 768) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('policy' as const), policy: fc.constantFrom(...DELETION_POLICIES) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('dieAfter' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('failLaunches' as const), count: fc.integer({ min: 0, max: 14 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('refuse' as const),
      method: fc.constantFrom(...REFUSABLE),
      count: fc.integer({ min: 1, max: 8 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 400_000 }), fc.integer({ min: -7_200_000, max: 36_000_000 })),
    }),
  },
)

const CREATING = ['host.start', 'host.applyCredentials', 'credentials.write', 'store.create Environment']

class History {
  readonly world: OperatorWorld = operatorWorld()
  suspended = false
  policy: DeletionPolicy = 'Retain'
  deleted = false
  adopted = true
  setBackMs = 0
  seq = 1
  uid = ''
  key: ResourceKey = { namespace: '', name: '' }

  async begin(): Promise<void> {
    this.key = await this.world.create({
      deletionPolicy: 'Retain',
      request: { id: 'op_1', seq: 1, verb: 'create' },
    })
    this.uid = (await this.world.must(this.key)).metadata.uid
  }

  /** One look, as the controller makes it; a process that dies is followed by a fresh one. */
  async look(): Promise<number | undefined> {
    const before = this.world.calls().length
    let requeueMs: number | undefined
    try {
      requeueMs = await this.world.reconcile(this.key)
    } catch (error) {
      if (!(error instanceof Died)) throw error
      requeueMs = 0
    }
    if (this.deleted)
      for (const call of this.world.calls().slice(before))
        assert.ok(!CREATING.includes(call), `${call} for an environment that is being deleted`)
    if (requeueMs === 0) this.world.restart()
    this.world.host.tick()
    const inits = this.world.host.instances.get(this.uid)?.inits ?? 0
    assert.ok(inits <= 1, 'data was initialized twice')
    return requeueMs
  }

  async take(step: Step): Promise<void> {
    const { world, key, uid } = this
    const there = world.host.instances.has(uid)
    switch (step.do) {
      case 'look':
        for (let time = 0; time < step.times; time++) world.pass(Math.min((await this.look()) ?? 0, 5_000))
        break
      case 'suspend':
      case 'resume':
        if (this.deleted) break
        this.suspended = step.do === 'suspend'
        this.seq += 1
        await world.edit(key, {
          suspended: this.suspended,
          request: { id: `op_${this.seq}`, seq: this.seq, verb: step.do },
        })
        break
      case 'memory':
        if (!this.deleted) await world.edit(key, { resources: { memory: `${step.mebibytes}Mi` } })
        break
      case 'policy':
        if (this.deleted) break
        this.policy = step.policy
        await world.edit(key, { deletionPolicy: step.policy })
        break
      case 'delete':
        this.deleted = true
        // What goes before the operator ever saw it leaves nothing, and nobody to tell.
        this.adopted = (await world.must(key)).metadata.finalizers.length > 0
        await world.remove(key)
        break
      case 'kill':
      case 'hang':
      case 'changePassword':
      case 'loseDeletionPolicy':
        if (there) world.host[step.do](uid)
        break
      case 'loseCredentials':
        world.credentials.kept.clear()
        break
      case 'restart':
        world.restart()
        break
      case 'dieAfter':
        world.restart(step.count)
        break
      case 'failLaunches':
        world.host.failLaunches(step.count)
        break
      case 'refuse':
        world.host.refuse(step.method, step.count)
        break
      case 'pass':
        world.pass(step.ms)
        this.setBackMs += Math.max(0, -step.ms)
        break
    }
  }

  /** Faults end; the operator goes on, without its memory or with it, until what is wanted is so. */
  async converge(forget: boolean): Promise<void> {
    const { world } = this
    world.host.failLaunches(0)
    for (const method of REFUSABLE) world.host.refuse(method, 0)
    if (forget) world.restart()
    // Long enough for the next proof of a sign-in to be due, however far the clock was set back after the last one.
    world.pass(301_000 + this.setBackMs)
    let quiet = 0
    for (let round = 0; quiet < 3; round++) {
      assert.ok(round < 1_000, `never converges: ${JSON.stringify((await world.get(this.key))?.status)}`)
      const writes = world.store.writes()
      world.pass(Math.min((await this.look()) ?? 30_000, 30_000))
      quiet = (await this.isDone()) && world.store.writes() === writes ? quiet + 1 : 0
    }
  }

  async isDone(): Promise<boolean> {
    const { status } = (await this.world.get(this.key)) ?? {}
    if (this.deleted) return status === undefined
    return status?.phase === (this.suspended ? 'suspended' : 'ready')
  }

  async check(): Promise<void> {
    const { world, key, uid } = this
    const instance = world.host.instances.get(uid)
    const records = await world.records()
    if (this.deleted) {
      assert.equal(instance, undefined)
      assert.equal(world.credentials.kept.size, 0)
      if (this.policy === 'Delete') assert.ok(!world.host.retained.has(uid), 'data is kept that was to go')
      assert.deepEqual(
        records.map(({ spec }) => [spec.uid, spec.retained]),
        this.adopted ? [[uid, world.host.retained.has(uid)]] : [],
      )
      return
    }
    assert.deepEqual(records, [])
    const { status, metadata, spec } = await world.must(key)
    assert.equal(status?.observedGeneration, metadata.generation)
    assert.deepEqual([status.operation?.id, status.operation?.outcome], [`op_${this.seq}`, 'succeeded'])
    if (instance !== undefined) assert.equal(instance.deletionPolicy, this.policy)
    if (this.suspended) {
      assert.ok(instance === undefined || instance.state === 'stopped' || instance.state === 'absent')
      return
    }
    assert.equal(instance?.state, 'running')
    assert.equal(instance.password, world.credentials.kept.get(uid)?.app.password)
    assert.equal(status.resources?.memory, spec.resources?.memory)
    assert.equal(instance.spec?.memoryBytes, Number.parseInt(spec.resources?.memory ?? '') * 2 ** 20)
  }
}

const live = async (steps: readonly Step[], forget: boolean): Promise<void> => {
  const history = new History()
  await history.begin()
  for (const each of steps) await history.take(each)
  await history.converge(forget)
  await history.check()
}

describe('an environment, whatever happens to it', () => {
  it('ends as its last spec demands, by legal moves, and then rests', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), live), {
      numRuns: sized(200, 4_000),
    })
  }).timeout(120_000)

  it('goes when it is deleted at any point, creates nothing after it, and leaves one record', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.array(step, { maxLength: 8 }),
        fc.boolean(),
        (before, after, forget) => live([...before, { do: 'delete' }, ...after], forget),
      ),
      { numRuns: sized(200, 4_000) },
    )
  }).timeout(120_000)
})
