/** The control plane dies after every single change that it makes, one after the other: the end is always the same. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../crds/environment-type.ts'
import { shortUid } from '../crds/metadata.ts'
import { processesOf } from '../runtime/postgres/postmaster-pid.ts'
import { sized } from '../testkit/full.ts'
import type { Answer, OperationBody } from './api-client.ts'
import { BoxProcess } from './box-process.ts'
import type { CrashOrder } from './crashing-box.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'
import { freshId } from './world.ts'

interface Verb {
  /** Brings a new environment to where the verb is asked for. */
  readonly before: (tenant: Tenant, id: string) => Promise<void>
  readonly ask: (tenant: Tenant, id: string, key: string) => Promise<Answer<unknown>>
  /** What must be true at the end, however often the control plane died meanwhile. */
  readonly after: (tenant: Tenant, id: string) => Promise<void>
}

const preview = { kind: 'preview', ttl_hours: 1 }
const withRows = async (tenant: Tenant, id: string): Promise<void> => {
  await tenant.createEnvironment(id, preview)
  await tenant.sql(id, session => session.rows('create table kept as select 42 as answer'))
}
const readyWithRows = async (tenant: Tenant, id: string): Promise<void> => {
  await tenant.inPhase(id, 'ready')
  const rows = await tenant.sql(id, session => session.rows('select answer from kept'))
  assert.deepEqual(rows, [{ answer: 42 }])
}

const VERBS: Readonly<Record<string, Verb>> = {
  create: {
    before: () => Promise.resolve(),
    ask: (tenant, id, key) => tenant.requestEnvironment(id, preview, { key }),
    after: async (tenant, id) => {
      await tenant.inPhase(id, 'ready')
      const rows = await tenant.sql(id, session => session.rows('select current_database()::text as name'))
      assert.deepEqual(rows, [{ name: 'app' }])
    },
  },
  suspend: {
    before: withRows,
    ask: (tenant, id, key) => tenant.world.api.call('POST', tenant.path(id, '/suspend'), { key }),
    after: async (tenant, id) => {
      await tenant.inPhase(id, 'suspended')
      await tenant.run('resume', id)
      await readyWithRows(tenant, id)
    },
  },
  resume: {
    before: async (tenant, id) => {
      await withRows(tenant, id)
      await tenant.run('suspend', id)
    },
    ask: (tenant, id, key) => tenant.world.api.call('POST', tenant.path(id, '/resume'), { key }),
    after: readyWithRows,
  },
  renew: {
    before: withRows,
    ask: (tenant, id, key) =>
      tenant.world.api.call('POST', tenant.path(id, '/renew'), { key, body: { ttl_hours: 100 } }),
    after: async (tenant, id) => {
      const hours = ((await tenant.environment(id)).expires_at_epoch_seconds! - Date.now() / 1000) / 3600
      assert.ok(hours > 99 && hours <= 100, `${hours} hours are left`)
      await readyWithRows(tenant, id)
    },
  },
  update: {
    before: withRows,
    ask: (tenant, id, key) =>
      tenant.world.api.call('PATCH', tenant.path(id), { key, body: { deletion_policy: 'retain' } }),
    after: async (tenant, id) => {
      assert.equal((await tenant.environment(id)).deletion_policy, 'retain')
      assert.equal((await tenant.world.store.get(environmentType, tenant.key(id)))?.spec.deletionPolicy, 'Retain')
      await readyWithRows(tenant, id)
    },
  },
  rotate: {
    before: withRows,
    ask: (tenant, id, key) => tenant.world.api.call('POST', tenant.path(id, '/rotate-credentials'), { key }),
    after: readyWithRows,
  },
  delete: {
    before: withRows,
    ask: (tenant, id, key) => tenant.world.api.call('DELETE', tenant.path(id), { key }),
    after: async (tenant, id) => {
      await tenant.inPhase(id, 'deleted')
      assert.equal(await tenant.world.store.get(environmentType, tenant.key(id)), undefined)
    },
  },
}

describe('the control plane dies after every change that it makes', function () {
  this.timeout(300_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  let tenant: Tenant
  let started = false

  const start = async (): Promise<void> => {
    await box.start()
    world = singleBoxWorld(box)
    tenant = started ? tenant.in(world) : await Tenant.create(world)
    started = true
  }
  const order = async (message: CrashOrder): Promise<unknown> => {
    const { child } = box
    const answered = once(child, 'message')
    // One that died meanwhile refuses this call alone: without the callback the child emits an error, and everybody who
    // waits for its exit would be told that instead.
    await new Promise<void>((resolve, reject) => child.send(message, error => (error ? reject(error) : resolve())))
    return (await answered)[0]
  }

  before(async () => {
    box = await BoxProcess.create({ program: join(import.meta.dirname, 'crashing-box.ts'), ipc: true })
    await start()
  })
  after(async () => {
    await world.close()
    await box.remove()
  })

  /** Asks until there is an answer; with its key, so that it is one wish. */
  const askUntilAnswered = async (verb: Verb, id: string, key: string): Promise<Answer<unknown>> => {
    for (let attempt = 1; ; attempt++) {
      const answer = await verb.ask(tenant, id, key)
      if (answer.status < 500 && (answer.body as { code?: string }).code !== 'idempotency_in_progress') return answer
      assert.ok(attempt < 100, answer.text)
      await sleep(100)
    }
  }

  /** The end: the operation succeeded, what must hold holds, and nothing is left over that nobody owns. */
  const judge = async (name: string, verb: Verb, id: string, answer: Answer<unknown>): Promise<void> => {
    assert.ok([200, 202].includes(answer.status), answer.text)
    if (answer.status === 202) await tenant.succeeded((answer.body as OperationBody).id)
    await verb.after(tenant, id)
    const events = (await tenant.auditEvents(200)).filter(
      event =>
        event.action === (name === 'rotate' ? 'rotate_credentials' : `${name}_environment`) &&
        event.resource_id.endsWith(id),
    )
    assert.equal(events.length, 1, JSON.stringify(events))
    const { items } = await world.store.list(environmentType)
    const owned = items.map(item => shortUid(item.metadata.uid))
    const orphans = box.dataFolders().environments.filter(folder => !owned.some(uid => folder.includes(uid)))
    assert.deepEqual(orphans, [])
    for (const item of items) {
      const folder = box.dataFolders().environments.find(path => path.includes(shortUid(item.metadata.uid)))
      assert.ok(folder, `${item.metadata.name} has no folder`)
      // One postmaster and its children, all in its own folder: processes of two generations would show as two.
      const running = processesOf(folder).length > 0
      assert.equal(running, item.spec.suspended !== true, `${item.metadata.name} runs: ${running}`)
    }
    if (name !== 'delete') await tenant.run('delete', id)
  }

  /** The steps that an undisturbed call took, its aftermath included. */
  const stepsOf = async (answer: Answer<unknown>): Promise<string[]> => {
    if (answer.status === 202) await tenant.succeeded((answer.body as OperationBody).id)
    for (let steps: string[] = [], quietRounds = 0; ; quietRounds++) {
      await sleep(100)
      const now = (await order({ tell: true })) as string[]
      if (now.length !== steps.length) quietRounds = 0
      if (quietRounds === 5) return now
      steps = now
    }
  }

  /** Asks, and waits for the process to die of it: undefined. One that outlives its work answers the calls it made. */
  const takenAlive = async (verb: Verb, id: string, key: string): Promise<string[] | undefined> => {
    const { child } = box
    // It may be dead by now: what an earlier verb left to do counts too.
    const isAlive = child.exitCode === null && child.signalCode === null
    const death = isAlive ? once(child, 'exit').then(() => undefined) : Promise.resolve(undefined)
    let answered: Answer<unknown> | undefined
    const work = verb
      .ask(tenant, id, key)
      .then(async answer => {
        answered = answer
        return stepsOf(await askUntilAnswered(verb, id, key))
      })
      // A call that broke is the death's doing, which is seen a moment later.
      .catch(async (error: unknown) => {
        await sleep(5_000)
        throw error
      })
    const taken = await Promise.race([death, work])
    if (answered) assert.ok(answered.status < 500, answered.text)
    return taken
  }

  for (const [name, verb] of Object.entries(VERBS))
    it(`${name}: dies after each step in turn`, async () => {
      const undisturbed = freshId(name)
      await verb.before(tenant, undisturbed)
      await order({ count: true })
      const answer = await askUntilAnswered(verb, undisturbed, randomUUID())
      const steps = await stepsOf(answer)
      await judge(name, verb, undisturbed, answer)
      assert.ok(steps.length >= 1, 'The verb changed nothing')
      // Which calls one verb takes varies: two reports become one on a busy machine, an earlier verb's last call is seen
      // here. So a number may lie beyond the run's last call; then the run is an undisturbed one and must say so.
      const numbers = Array.from({ length: steps.length }, (_, index) => index + 1)
      const chosen = sized(0, 1) === 1 ? numbers : numbers.slice(0, 1 + (name.length % steps.length)).reverse()
      let deaths = 0
      for (const dieAfter of chosen) {
        const id = freshId(name)
        const key = randomUUID()
        await verb.before(tenant, id)
        await order({ count: true, dieAfter })
        const taken = await takenAlive(verb, id, key)
        if (taken) assert.ok(taken.length < dieAfter, `${name} did not die after step ${dieAfter}: ${taken.join(', ')}`)
        else {
          deaths++
          await world.close()
          await start()
        }
        await judge(name, verb, id, await askUntilAnswered(verb, id, key))
        if (deaths === 1 && sized(0, 1) === 0) break
      }
      assert.ok(deaths > chosen.length / 2 || (deaths === 1 && sized(0, 1) === 0), `${deaths} of ${chosen.length} died`)
    })
})
