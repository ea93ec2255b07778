/** The operator over the real embedded store, woken by its watch and by a host that moves by itself. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { deletionRecordName } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../crds/metadata.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { silentLog } from '../runtime/log/log.ts'
import { StoreError } from '../runtime/store/store-error.ts'
import { eventually } from '../testkit/dispatch-world.ts'
import { storeDatabase } from '../testkit/embedded-store.ts'
import { type Faults, faultyStore } from '../testkit/faulty-store.ts'
import { FIGURES } from '../testkit/gen.ts'
import { memoryCredentials } from '../testkit/memory-credentials.ts'
import { modelHost } from '../testkit/model-host.ts'
import { operatorConfig } from './config/config.ts'
import { sweepDeletionRecords } from './deletion-records/sweep.ts'
import type { Host } from './host/host.ts'
import { type Operator, startOperator } from './start.ts'

for (const place of ['local', 'kubernetes'] as const)
  describe(`startOperator, configured for ${place}`, () => {
    const ends: (() => Promise<unknown>)[] = []
    let user: EmbeddedResourceStore
    let url: string
    let host: ReturnType<typeof modelHost>
    let isTimeStill: boolean
    const credentials = memoryCredentials()

    beforeEach(async () => {
      url = await storeDatabase()
      user = new EmbeddedResourceStore({ url, clientName: 'somebody' })
      host = modelHost()
      isTimeStill = false
      const ticking = setInterval(() => isTimeStill || host.tick(), 5)
      ends.push(
        () => user.close(),
        async () => clearInterval(ticking),
      )
    })
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end()
    })

    const start = (
      as: Host = host,
      registry = new Registry(),
      faults: Faults = {},
      elected?: Promise<unknown>,
      settings: Readonly<Record<string, string>> = {},
    ): Operator => {
      const store = new EmbeddedResourceStore({ url, clientName: 'svc-operator' })
      const operator = startOperator(
        { ...operatorConfig(settings, place), reconnect: { baseMs: 1, capMs: 5 } },
        {
          ...{ store: faultyStore(store, faults), credentials, host: as, log: silentLog, registry },
          ...(elected && { elected }),
        },
      )
      ends.push(
        () => store.close(),
        () => operator.stop(),
      )
      return operator
    }
    const create = (environmentId: string): Promise<Environment> => {
      const path = { organizationId: 'acme', projectId: 'shop', environmentId }
      const spec = { ...path, kind: 'staging' as const, resources: FIGURES }
      return user.create(environmentType, { namespace: 'svc-acme-shop', name: environmentName(path), spec })
    }
    const keyFor = ({ metadata }: Environment) => ({ namespace: metadata.namespace, name: metadata.name })
    const phaseOf = async (environment: Environment) =>
      (await user.get(environmentType, keyFor(environment)))?.status?.phase ?? 'gone'
    const until = async (environment: Environment, phase: string): Promise<void> => {
      while ((await phaseOf(environment)) !== phase) await sleep(5)
    }

    it('takes an environment through its life as its spec changes', async () => {
      await start().ready()
      const made = await create('main')
      const { uid } = made.metadata
      await until(made, 'ready')
      await user.patch(environmentType, keyFor(made), { spec: { suspended: true } }, { uid })
      await until(made, 'suspended')
      assert.equal(host.instances.get(uid)?.state, 'stopped')
      await user.patch(environmentType, keyFor(made), { spec: { suspended: false } }, { uid })
      await until(made, 'ready')
      await user.delete(environmentType, keyFor(made), { uid })
      await until(made, 'gone')
      const record = await user.get(deletionRecordType, { namespace: 'svc-system', name: deletionRecordName(uid) })
      assert.deepEqual([record?.spec.cause, record?.spec.actor], ['external', 'somebody'])
    })

    it('looks at the passwords as soon as somebody touches an environment, and not only when their time has come', async () => {
      await start().ready()
      const made = await create('main')
      const owner = { ...keyFor(made), uid: made.metadata.uid }
      await until(made, 'ready')
      // What a first proof may still have to do.
      await sleep(50)
      await credentials.delete(owner)
      await sleep(50)
      assert.equal(await credentials.read(owner), undefined)
      const patch = { metadata: { annotations: { touched: 'once' } } }
      await user.patch(environmentType, keyFor(made), patch, { uid: owner.uid })
      while ((await credentials.read(owner)) === undefined) await sleep(5)
    })

    it('is back with a store that was away for long as soon as it was told to look again', async () => {
      let outages = 0
      const reading = (): void => {
        // Twelve waits that double from 0.8 s would be minutes.
        if (++outages <= 12) throw new StoreError('Unavailable', 'away')
      }
      await start(host, new Registry(), { reading }).ready()
      assert.ok(outages > 12)
    })

    it('brings twenty up at once and shows them by phase', async () => {
      const registry = new Registry()
      await start(host, registry).ready()
      const made = await Promise.all(Array.from({ length: 20 }, (_, n) => create(`pr-${n + 10}`)))
      await Promise.all(made.map(each => until(each, 'ready')))
      // They tell what the operator has seen, which may be a moment behind what it wrote.
      const metrics = await eventually(
        () => registry.metrics(),
        text => /^environments\{phase="ready"\} 20$/m.test(text),
        'all twenty are seen to be ready',
      )
      assert.match(metrics, /^controller_runtime_reconcile_total\{controller="environment",result="success"\} \d+$/m)
      assert.match(metrics, /^phase_duration_seconds_count\{from="provisioning",to="ready"\} 20$/m)
    })

    it('ends what it began of many that are made at once, before it begins all of the others', async () => {
      const busy: Host = {
        ...host,
        start: async (ref, spec) => {
          await sleep(20)
          return host.start(ref, spec)
        },
      }
      await start(busy, new Registry(), {}, undefined, { SERVICE_OPERATOR_CONCURRENCY: '1' }).ready()
      const many = 40
      await Promise.all(Array.from({ length: many }, (_, n) => create(`pr-${n + 10}`)))
      const phases = async () =>
        (await user.list(environmentType)).items.map(({ status }) => status?.phase ?? 'requested')
      const seen = await eventually(phases, all => !all.includes('requested'), 'all are begun')
      const done = seen.filter(phase => phase === 'ready').length
      assert.ok(done > many / 2, `${done} of ${many} are ready when the last one is begun`)
    })

    it('is ready only once environments that do not answer are called updating', async () => {
      const first = start()
      await first.ready()
      const made = await Promise.all(['aa', 'bb', 'cc'].map(create))
      await Promise.all(made.map(each => until(each, 'ready')))
      await first.stop()
      // A machine that restarted: nothing runs, and nothing comes up while the host cannot start it.
      for (const each of made) host.loseProcess(each.metadata.uid)
      host.refuse('start', Infinity)
      await start().ready()
      assert.deepEqual(await Promise.all(made.map(phaseOf)), ['updating', 'updating', 'updating'])
      host.refuse('start', 0)
      await Promise.all(made.map(each => until(each, 'ready')))
    })

    it('is ready although one environment cannot be looked at', async () => {
      const [bad, good] = await Promise.all([create('bad'), create('good')])
      const broken: Host = {
        ...host,
        observe: async ref => {
          if (ref.uid === bad.metadata.uid) throw new Error('The folder cannot be read')
          return await host.observe(ref)
        },
      }
      await start(broken).ready()
      await until(good, 'ready')
      assert.notEqual(await phaseOf(bad), 'ready')
    })

    it('sees by the word of its host that a process died', async () => {
      await start().ready()
      const made = await create('main')
      await until(made, 'ready')
      const seen: string[] = []
      const watching = new AbortController()
      const { resourceVersion: from } = await user.list(environmentType)
      const watch = (async () => {
        for await (const event of user.watch(environmentType, { from, signal: watching.signal })) {
          if (event.type === 'bookmark') continue
          const phase = event.object.status?.phase ?? 'none'
          // What is written of one that is ready before its death is seen is no step.
          if (phase === 'ready' && seen.length === 0) continue
          seen.push(phase)
          isTimeStill = false
          if (phase === 'ready') return
        }
      })()
      // Else the host may have it back before anybody looked.
      isTimeStill = true
      host.kill(made.metadata.uid)
      await watch
      watching.abort()
      assert.deepEqual(seen, ['updating', 'ready'])
    })

    it('rejects whoever waits for it when it is stopped first', async () => {
      const made = await create('main')
      const { uid } = made.metadata
      await user.patch(environmentType, keyFor(made), { metadata: { finalizers: [ENVIRONMENT_FINALIZER] } }, { uid })
      const looked = Promise.withResolvers<undefined>()
      const release = Promise.withResolvers<undefined>()
      const operator = start({
        ...host,
        observe: async ref => {
          looked.resolve(undefined)
          await release.promise
          return await host.observe(ref)
        },
      })
      const waiting = assert.rejects(operator.ready())
      await looked.promise
      const stopped = operator.stop()
      await waiting
      release.resolve(undefined)
      await stopped
    })

    it('stands by with full caches until it is elected, and changes nothing before', async () => {
      const made = await create('main')
      const { promise: elected, resolve: elect } = Promise.withResolvers<undefined>()
      const changes: string[] = []
      const before = ({ verb, name }: { verb: string; name: string }): void => {
        changes.push(`${verb} ${name}`)
      }
      const operator = start(host, new Registry(), { before }, elected)
      await operator.synced
      await sleep(50)
      assert.deepEqual(changes, [])
      elect(undefined)
      await operator.ready()
      await until(made, 'ready')
      assert.notEqual(changes.length, 0)
    })

    it('can be stopped while it stands by', async () => {
      const operator = start(host, new Registry(), {}, new Promise(() => undefined))
      await operator.synced
      await operator.stop()
      await assert.rejects(operator.ready())
    })

    if (place === 'kubernetes')
      it('looks at environments that rest without a call to the store', async () => {
        let reads = 0
        const reading = (): void => {
          reads += 1
        }
        await start(host, new Registry(), { reading }).ready()
        const made = await create('main')
        await until(made, 'ready')
        await sleep(50)
        const readsBefore = reads
        const { resourceVersion } = (await user.get(environmentType, keyFor(made)))!.metadata
        host.hang(made.metadata.uid)
        await until(made, 'updating')
        assert.equal(reads, readsBefore)
        assert.notEqual((await user.get(environmentType, keyFor(made)))?.metadata.resourceVersion, resourceVersion)
      })

    it('drops deletion records that nobody fetched in time, and no others', async () => {
      const spec = {
        ...{ name: 'acme.shop.main', namespace: 'svc-acme-shop', cause: 'external', retained: false },
        ...{ organizationId: 'acme', projectId: 'shop', environmentId: 'main', deletedAt: '2026-01-05T12:00:00Z' },
      }
      for (const uid of ['one', 'two'])
        await user.create(deletionRecordType, {
          namespace: 'svc-system',
          name: deletionRecordName(uid),
          spec: { ...spec, uid },
        })
      const sweep = { store: user, namespace: 'svc-system', keepMs: 1_000 }
      assert.equal(await sweepDeletionRecords({ ...sweep, now: Date.now }), 0)
      assert.equal(await sweepDeletionRecords({ ...sweep, now: () => Date.now() + 60_000 }), 2)
      assert.deepEqual((await user.list(deletionRecordType)).items, [])
    })
  })
