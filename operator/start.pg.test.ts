/** The operator with everything real: the embedded store, sealed credentials, and Postgres servers on this machine. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Registry } from 'prom-client'
import { conditionOf } from '../crds/conditions.ts'
import { deletionRecordName } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment, EnvironmentSpec } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { SealedCredentials } from '../runtime/embedded/sealed-credentials.ts'
import { silentLog } from '../runtime/log/log.ts'
import { storeDatabase } from '../testkit/embedded-store.ts'
import { FIGURES } from '../testkit/gen.ts'
import { openTestHost } from '../testkit/local-host.ts'
import { testFolder } from '../testkit/server-files.ts'
import { operatorConfig } from './config/config.ts'
import type { LocalHost } from './host/local/local-host.ts'
import { startOperator } from './start.ts'

describe('the operator on real servers', function () {
  this.timeout(60_000)
  const ends: (() => Promise<unknown>)[] = []
  let user: EmbeddedResourceStore
  let credentials: SealedCredentials
  let host: LocalHost

  before(async () => {
    const url = await storeDatabase()
    user = new EmbeddedResourceStore({ url, clientName: 'somebody' })
    const store = new EmbeddedResourceStore({ url, clientName: 'svc-operator' })
    const masterKeys = { current: randomBytes(32), previous: [] }
    credentials = await SealedCredentials.open({ url, clientName: 'svc-operator', masterKeys })
    host = await openTestHost(testFolder())
    const ports = { store, credentials, host, log: silentLog, registry: new Registry() }
    const operator = startOperator(operatorConfig({}), ports)
    ends.push(
      () => user.close(),
      () => store.close(),
      () => credentials.close(),
      () => host.stopAll({ keepDatabases: false }),
      () => operator.stop(),
    )
    await operator.ready()
  })
  after(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  const keyFor = ({ metadata }: Environment) => ({ namespace: metadata.namespace, name: metadata.name })
  const create = (environmentId: string, spec: Partial<EnvironmentSpec> = {}): Promise<Environment> => {
    const path = { organizationId: 'acme', projectId: 'shop', environmentId }
    return user.create(environmentType, {
      namespace: 'svc-acme-shop',
      name: environmentName(path),
      spec: { ...path, kind: 'staging', resources: FIGURES, ...spec },
    })
  }
  const edit = (made: Environment, spec: Record<string, unknown>): Promise<Environment> =>
    user.patch(environmentType, keyFor(made), { spec }, { uid: made.metadata.uid })
  /** Waits for a phase that was judged for the newest spec; undefined: for the resource to be gone. */
  const until = async (made: Environment, phase: string | undefined): Promise<Environment> => {
    for (const deadline = Date.now() + 30_000; ; ) {
      const now = await user.get(environmentType, keyFor(made))
      const judged = now?.status?.observedGeneration === now?.metadata.generation
      if (now?.status?.phase === phase && judged) return now ?? made
      assert.ok(Date.now() < deadline, `expected ${phase}, it is ${JSON.stringify(now?.status)}`)
      await sleep(5)
    }
  }
  /** Every phase that is written from now on, up to the first ready that follows another one. */
  const phasesUntilReady = async (): Promise<string[]> => {
    const seen: string[] = []
    const { resourceVersion: from } = await user.list(environmentType)
    for await (const event of user.watch(environmentType, { from, signal: AbortSignal.timeout(30_000) })) {
      if (event.type === 'bookmark') continue
      const phase = event.object.status?.phase ?? 'none'
      if (phase !== seen.at(-1)) seen.push(phase)
      if (phase === 'ready' && seen.length > 1) break
    }
    return seen
  }
  const query = async (made: Environment, sql: string): Promise<unknown[]> => {
    const kept = await credentials.read({ ...keyFor(made), uid: made.metadata.uid })
    const { endpoint } = (await user.get(environmentType, keyFor(made)))!.status!
    const { username, password } = kept!.app
    const at = { host: endpoint!.host, port: endpoint!.port, database: 'app' }
    const client = new pg.Client({ ...at, user: username, password })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows.flat()
    } finally {
      await client.end()
    }
  }

  it('takes an environment through its life, rows and all', async () => {
    const made = await create('life', { deletionPolicy: 'Retain' })
    await until(made, 'ready')
    await query(made, 'create table kept as select 42 as answer')

    const pid = host.listInstances()[0]?.pid
    assert.ok(pid !== undefined)
    process.kill(pid, 'SIGKILL')
    await until(made, 'updating')
    await until(made, 'ready')
    assert.deepEqual(await query(made, 'select answer from kept'), [42])

    await edit(made, { suspended: true })
    await until(made, 'suspended')
    assert.equal(host.listInstances()[0]?.pid, undefined)
    await edit(made, { suspended: false })
    await until(made, 'ready')

    const seen = phasesUntilReady()
    await edit(made, { resources: { maxConnections: 70 } })
    const bigger = await until(made, 'ready')
    assert.deepEqual(await seen, ['ready', 'updating', 'ready'])
    assert.equal(bigger.status?.resources?.maxConnections, 70)
    const [connections] = await query(made, 'show max_connections')
    assert.ok(Number(connections) >= 70, `max_connections is ${String(connections)}`)
    assert.deepEqual(await query(made, 'select answer from kept'), [42])

    await user.delete(environmentType, keyFor(made), { uid: made.metadata.uid })
    await until(made, undefined)
    const key = { namespace: 'svc-system', name: deletionRecordName(made.metadata.uid) }
    const { spec } = (await user.get(deletionRecordType, key))!
    assert.deepEqual([spec.cause, spec.retained, spec.retainedUntil !== undefined], ['external', true, true])
    assert.deepEqual(host.listInstances(), [])
    assert.equal(await credentials.read({ ...keyFor(made), uid: made.metadata.uid }), undefined)
  })

  it('rotates passwords without one failed sign-in of whoever holds the newest that are kept', async () => {
    const made = await create('rotated')
    await until(made, 'ready')
    const owner = { ...keyFor(made), uid: made.metadata.uid }
    const passwords = new Set<string>()
    const failures: unknown[] = []
    const done = new AbortController()
    const signingIn = (async () => {
      while (!done.signal.aborted) {
        const before = (await credentials.read(owner))!.app.password
        const failed = await query(made, 'select 1').then(
          () => undefined,
          (error: unknown) => error,
        )
        // A password that was replaced while it was tried may be refused; one that is still in force may not, once it was
        // in force before: the server learns a new one a moment before it is published.
        const { app, next } = (await credentials.read(owner))!
        if (failed !== undefined && app.password === before && next === undefined) failures.push(failed)
      }
    })()
    for (const wish of ['one', 'two', 'three']) {
      await edit(made, { credentialsRotation: wish })
      for (;;) if ((await user.get(environmentType, keyFor(made)))?.status?.credentialsRotation === wish) break
      passwords.add((await credentials.read(owner))!.app.password)
    }
    done.abort()
    await signingIn
    assert.deepEqual(failures, [])
    assert.equal(passwords.size, 3)
    assert.deepEqual(await query(made, 'select 1'), [1])
    await user.delete(environmentType, keyFor(made), { uid: made.metadata.uid })
    await until(made, undefined)
  })

  it('sets the password again that a tenant changed, once it is asked to prove it', async () => {
    const made = await create('drift')
    await until(made, 'ready')
    await query(made, `alter role app password 'mine'`)
    await assert.rejects(query(made, 'select 1'))
    // A word from the host asks for a new proof: a crash is one.
    process.kill(host.listInstances().find(({ uid }) => uid === made.metadata.uid)!.pid!, 'SIGKILL')
    await until(made, 'updating')
    const back = await until(made, 'ready')
    assert.deepEqual(await query(made, 'select 1'), [1])
    assert.equal(conditionOf(back.status?.conditions, 'CredentialsReady')?.status, 'True')
    await user.delete(environmentType, keyFor(made), { uid: made.metadata.uid })
    await until(made, undefined)
  })
})
