/**
 * What every host does, whatever its databases run on. A harness says how to get at the host's world from the side; all else
 * goes through the port. Each test uses instances of its own.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeletionPolicy } from '../../lib/model/environment.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'
import type { Host, InstanceRef, InstanceSpec, InstanceState, ObservedInstance } from './host.ts'

/** A host's world for tests. */
export interface HostHarness {
  readonly host: Host
  /** What a start takes here; small. */
  readonly spec: InstanceSpec
  /** How long the slowest state change may take. */
  readonly deadlineMs: number
  /** The control plane dies without a word, and another one looks at the same world; the databases live on. */
  restartControlPlane(): Promise<Host>
  /** Makes whatever must be there before an instance, and says where that is; left out where that is nothing. */
  place?(ref: InstanceRef): Promise<InstanceRef>
  /** Ends the instance's Postgres without any chance to clean up. */
  crash(ref: InstanceRef): Promise<void>
  /** What tells one Postgres process from the next: a pid and its start, a pod's uid. Undefined: no process is there. */
  processOf(ref: InstanceRef): Promise<string | undefined>
  /** One statement as `app` through the endpoint. */
  query(observed: ObservedInstance, credentials: CredentialSet, sql: string): Promise<Record<string, unknown>[]>
  /** Rows of a retained instance, read from what was kept at that place. */
  queryRetained(retainedAt: string, sql: string): Promise<Record<string, unknown>[]>
  /** Folders, claims and processes that belong to the uid. */
  traces(ref: InstanceRef): Promise<string[]>
  dispose(): Promise<void>
}

const credentialsOf = (seed: string): CredentialSet => ({
  app: { username: 'app', password: `app-${seed}` },
  ops: { username: 'svc_ops', password: `ops-${seed}` },
})

/** Runs the contract against one adapter. */
export const describeHost = (name: string, makeHarness: () => Promise<HostHarness>): void => {
  describe(`host contract: ${name}`, function () {
    this.timeout(120_000)
    let harness: HostHarness
    let host: Host
    const credentials = credentialsOf(randomUUID())

    before(async () => {
      harness = await makeHarness()
      host = harness.host
    })
    after(() => harness.dispose())

    const newRef = async (environmentId = `e-${randomUUID().slice(0, 8)}`): Promise<InstanceRef> => {
      const ref = {
        key: { namespace: 'svc-acme-app-0', name: `acme.app.${environmentId}` },
        uid: randomUUID(),
        path: { organizationId: 'acme', projectId: 'app', environmentId },
      }
      return (await harness.place?.(ref)) ?? ref
    }
    const until = async (ref: InstanceRef, ...states: InstanceState[]): Promise<ObservedInstance> => {
      const deadline = Date.now() + harness.deadlineMs
      for (;;) {
        const observed = await host.observe(ref)
        if (states.includes(observed.state)) return observed
        assert.ok(Date.now() < deadline, `expected ${states.join(' or ')}, it is ${JSON.stringify(observed)}`)
        await sleep(20)
      }
    }
    const create = async (given?: InstanceRef): Promise<InstanceRef> => {
      const ref = given ?? (await newRef())
      await host.start(ref, harness.spec)
      await until(ref, 'running')
      await host.applyCredentials(ref, credentials)
      return ref
    }
    const query = async (ref: InstanceRef, sql: string): Promise<Record<string, unknown>[]> =>
      harness.query(await host.observe(ref), credentials, sql)
    const destroy = async (ref: InstanceRef, policy: DeletionPolicy) => {
      const deadline = Date.now() + harness.deadlineMs
      for (;;) {
        const destroyed = await host.destroy(ref, policy)
        if (destroyed.done) return destroyed
        assert.ok(Date.now() < deadline, 'the destroy does not end')
        await sleep(50)
      }
    }

    it('knows nothing of an instance that nobody asked for', async () => {
      const ref = await newRef()
      assert.deepEqual(await host.observe(ref), { state: 'absent', initialized: false, startFailures: 0 })
      assert.equal((await host.signIn(ref, credentials)).result, 'unreachable')
      await host.stop(ref)
      assert.deepEqual(await host.destroy(ref, 'Retain'), { done: true })
      assert.deepEqual(await host.destroy(ref, 'Delete'), { done: true })
    })

    it('brings an instance up, sets its passwords, and a client signs in through its endpoint', async () => {
      const ref = await newRef()
      await host.start(ref, harness.spec)
      const observed = await until(ref, 'running')
      assert.equal(observed.initialized, true)
      assert.equal(observed.startFailures, 0)
      assert.ok(observed.endpoint !== undefined && observed.image !== undefined && observed.lineage !== undefined)
      assert.equal((await host.signIn(ref, credentials)).result, 'refused')
      await host.applyCredentials(ref, credentials)
      assert.deepEqual(await host.signIn(ref, credentials), { result: 'ok' })
      assert.deepEqual(await query(ref, 'select current_user::text as who, current_database()::text as at'), [
        { who: 'app', at: 'app' },
      ])
    })

    it('replaces passwords: the new one signs in, the old one is refused', async () => {
      const ref = await create()
      const next = credentialsOf(randomUUID())
      await host.applyCredentials(ref, next)
      assert.deepEqual(await host.signIn(ref, next), { result: 'ok' })
      assert.equal((await host.signIn(ref, credentials)).result, 'refused')
    })

    it('starts what runs already without touching it', async () => {
      const ref = await create()
      const process = await harness.processOf(ref)
      await Promise.all([host.start(ref, harness.spec), host.start(ref, harness.spec)])
      await until(ref, 'running')
      assert.equal(await harness.processOf(ref), process)
    })

    it('answers many starts of a new instance at once with one instance', async () => {
      const ref = await newRef()
      await Promise.all(Array.from({ length: 5 }, () => host.start(ref, harness.spec)))
      await create(ref)
      assert.deepEqual(await query(ref, 'select 1 as one'), [{ one: 1 }])
    })

    it('stops cleanly, says stopped only when no process is there, and keeps rows and endpoint', async () => {
      const ref = await create()
      await query(ref, 'create table kept as select 42 as answer')
      const { endpoint } = await host.observe(ref)
      await host.stop(ref)
      for (let state: InstanceState | undefined; state !== 'stopped'; ) {
        ;({ state } = await host.observe(ref))
        if (state === 'stopped') assert.equal(await harness.processOf(ref), undefined)
        await sleep(5)
      }
      const stopped = await host.observe(ref)
      assert.equal(stopped.cleanStop, true)
      assert.equal((await host.signIn(ref, credentials)).result, 'unreachable')
      await host.start(ref, harness.spec)
      assert.deepEqual((await until(ref, 'running')).endpoint, endpoint)
      assert.deepEqual(await host.signIn(ref, credentials), { result: 'ok' })
      assert.deepEqual(await query(ref, 'select answer from kept'), [{ answer: 42 }])
    })

    it('ends sessions that would stay, and is stopped cleanly all the same', async () => {
      const ref = await create()
      // Much longer than any stop may take: a stop that waited for it would end by force.
      const asleep = query(ref, 'select pg_sleep(3600)').then(
        () => 'woke up',
        (error: unknown) => (error as { code?: string }).code,
      )
      const sleeping = `select count(*)::int as count from pg_stat_activity where query like 'select pg_sleep%' and wait_event = 'PgSleep'`
      for (const deadline = Date.now() + harness.deadlineMs; (await query(ref, sleeping))[0]!['count'] !== 1; )
        assert.ok(Date.now() < deadline, 'the session does not fall asleep')
      await host.stop(ref)
      const stopped = await until(ref, 'stopped')
      assert.equal(stopped.cleanStop, true)
      // admin_shutdown: it was told, and not just cut off.
      assert.equal(await asleep, '57P01')
    })

    it('lets the last word win when start and stop follow each other', async () => {
      const ref = await create()
      await host.stop(ref)
      await host.start(ref, harness.spec)
      await host.stop(ref)
      await until(ref, 'stopped')
      await host.stop(ref)
      await host.start(ref, harness.spec)
      await until(ref, 'running')
      assert.deepEqual(await host.signIn(ref, credentials), { result: 'ok' })
    })

    it('restarts for another size, and not for a bigger disk', async () => {
      const ref = await create()
      const first = await harness.processOf(ref)
      await host.start(ref, { ...harness.spec, storageBytes: harness.spec.storageBytes * 2 })
      await until(ref, 'running')
      assert.equal(await harness.processOf(ref), first)
      const bigger = { ...harness.spec, maxConnections: harness.spec.maxConnections + 7 }
      const before = await query(ref, 'show max_connections')
      await host.start(ref, bigger)
      assert.notEqual((await host.observe(ref)).state, 'running', 'the old process is called running')
      const deadline = Date.now() + harness.deadlineMs
      while ((await harness.processOf(ref)) === first) {
        assert.ok(Date.now() < deadline, 'it is not restarted')
        await sleep(20)
      }
      await until(ref, 'running')
      const after = await query(ref, 'show max_connections')
      assert.equal(Number(after[0]!['max_connections']) - Number(before[0]!['max_connections']), 7)
    })

    it('lets the tenant open as many connections as its size says, and keeps its own way in', async () => {
      const ref = await create()
      const observed = await host.observe(ref)
      const { maxConnections } = harness.spec
      let refused = 0
      const asked = Array.from({ length: maxConnections + 5 }, () =>
        harness.query(observed, credentials, 'select pg_sleep(2)').catch((error: unknown) => {
          assert.equal((error as { code?: string }).code, '53300')
          refused++
        }),
      )
      const deadline = Date.now() + harness.deadlineMs
      while (refused < 5) {
        assert.ok(Date.now() < deadline, `only ${refused} are refused`)
        await sleep(20)
      }
      // All that the tenant may have is in use.
      await host.applyCredentials(ref, credentials)
      assert.deepEqual(await host.signIn(ref, credentials), { result: 'ok' })
      await Promise.all(asked)
      assert.equal(refused, 5)
    })

    it('brings a crashed Postgres back by itself, rows there, and tells', async () => {
      const ref = await create()
      await query(ref, 'create table kept as select 42 as answer')
      const before = await harness.processOf(ref)
      const told = new Set<string>()
      const forget = host.onChange(key => told.add(key.name))
      await harness.crash(ref)
      const deadline = Date.now() + harness.deadlineMs
      for (;;) {
        const now = await harness.processOf(ref)
        const other = now !== undefined && now !== before
        if (other && (await host.signIn(ref, credentials)).result === 'ok') break
        assert.ok(Date.now() < deadline, 'it does not come back')
        await sleep(20)
      }
      forget()
      await until(ref, 'running')
      assert.deepEqual(await query(ref, 'select answer from kept'), [{ answer: 42 }])
      assert.equal(told.has(ref.key.name), true)
    })

    it('leaves a stopped instance stopped when its Postgres had crashed', async () => {
      const ref = await create()
      await harness.crash(ref)
      await host.stop(ref)
      await until(ref, 'stopped')
      assert.equal(await harness.processOf(ref), undefined)
      await host.start(ref, harness.spec)
      await until(ref, 'running')
    })

    it('finds everything again after a death of the control plane: the same process, the same passwords', async () => {
      const [running, stopped] = [await create(), await create()]
      await host.stop(stopped)
      await until(stopped, 'stopped')
      const process = await harness.processOf(running)
      const { endpoint } = await host.observe(running)
      host = await harness.restartControlPlane()
      const found = await until(running, 'running')
      assert.deepEqual(found.endpoint, endpoint)
      assert.equal(await harness.processOf(running), process)
      assert.deepEqual(await host.signIn(running, credentials), { result: 'ok' })
      assert.equal((await host.observe(stopped)).state, 'stopped')
      await harness.crash(running)
      const deadline = Date.now() + harness.deadlineMs
      while (
        (await harness.processOf(running)) === process ||
        (await host.signIn(running, credentials)).result !== 'ok'
      ) {
        assert.ok(Date.now() < deadline, 'an adopted one does not come back')
        await sleep(20)
      }
    })

    it('removes everything of a deleted instance, from every state', async () => {
      const bring: Record<string, (ref: InstanceRef) => Promise<unknown>> = {
        running: async () => undefined,
        stopped: ref => host.stop(ref).then(() => until(ref, 'stopped')),
        stopping: ref => host.stop(ref),
        crashed: ref => harness.crash(ref),
      }
      for (const [state, arrange] of Object.entries(bring)) {
        const ref = await create()
        await arrange(ref)
        assert.deepEqual(await destroy(ref, 'Delete'), { done: true }, state)
        assert.deepEqual(await harness.traces(ref), [], state)
        assert.equal((await host.observe(ref)).state, 'absent', state)
        assert.deepEqual(await host.destroy(ref, 'Delete'), { done: true }, state)
      }
      const starting = await newRef()
      await host.start(starting, harness.spec)
      assert.deepEqual(await destroy(starting, 'Delete'), { done: true })
      assert.deepEqual(await harness.traces(starting), [])
    })

    it('keeps the data of a retained instance where it says, and says so again', async () => {
      const ref = await create()
      await query(ref, 'create table kept as select 42 as answer')
      const destroyed = await destroy(ref, 'Retain')
      assert.ok(destroyed.retainedAt !== undefined)
      assert.equal(await harness.processOf(ref), undefined)
      assert.equal((await host.observe(ref)).state, 'absent')
      assert.deepEqual(await host.destroy(ref, 'Retain'), destroyed)
      host = await harness.restartControlPlane()
      assert.deepEqual(await host.destroy(ref, 'Retain'), destroyed)
      assert.deepEqual(await harness.queryRetained(destroyed.retainedAt, 'select answer from kept'), [{ answer: 42 }])
    })

    it('takes what is to become of the data in any state; it restarts nothing, and the destroy has the last word', async () => {
      const untilTold = async (policy: DeletionPolicy): Promise<void> => {
        const deadline = Date.now() + harness.deadlineMs
        for (;;) {
          const { deletionPolicy } = await host.observe(ref)
          // A host whose data nobody else can take away has nobody to tell.
          if (deletionPolicy === undefined || deletionPolicy === policy) return
          assert.ok(Date.now() < deadline, `expected ${policy}, it is ${deletionPolicy}`)
          await sleep(20)
        }
      }
      const ref = await newRef()
      await host.setDeletionPolicy(ref, 'Retain')
      assert.deepEqual(await host.observe(ref), { state: 'absent', initialized: false, startFailures: 0 })
      await create(ref)
      await query(ref, 'create table kept as select 42 as answer')
      const process = await harness.processOf(ref)
      await host.setDeletionPolicy(ref, 'Retain')
      await untilTold('Retain')
      assert.equal(await harness.processOf(ref), process)
      await host.stop(ref)
      await until(ref, 'stopped')
      await host.setDeletionPolicy(ref, 'Delete')
      await untilTold('Delete')
      const { retainedAt } = await destroy(ref, 'Retain')
      assert.deepEqual(await harness.queryRetained(retainedAt!, 'select answer from kept'), [{ answer: 42 }])
    })

    it('gives an id that is used again an empty database, each time, and keeps every predecessor apart', async () => {
      const places = new Set<string>()
      for (let round = 0; round < 3; round++) {
        const ref = await create(await newRef('reused'))
        await query(ref, `create table only_mine as select ${round} as round`)
        const { retainedAt } = await destroy(ref, 'Retain')
        places.add(retainedAt!)
      }
      assert.equal(places.size, 3)
      for (const [round, place] of [...places].entries())
        assert.deepEqual(await harness.queryRetained(place, 'select round from only_mine'), [{ round }])
    })
  })
}
