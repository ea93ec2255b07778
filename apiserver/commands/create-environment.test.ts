import assert from 'node:assert/strict'
import { environmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld, createBody, pathOf, setPhase } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { pendingIntents } from '../../testkit/pending-intents.ts'
import type { CreateEnvironmentBody } from '../contract/environments.ts'
import { findEnvironment } from '../store/environments.ts'
import { findOperation } from '../store/operations.ts'
import type { Principal } from './call.ts'
import { createEnvironment } from './create-environment.ts'
import { deleteEnvironment } from './delete-environment.ts'
import { putProject } from './put-project.ts'

const HOUR_MS = 3_600_000

describe('createEnvironment', () => {
  let world: CommandWorld
  before(async () => (world = await commandWorld()))
  after(() => world.stop())

  const create = (id: string, more: Partial<CreateEnvironmentBody> = {}, as: Principal = world.owner) =>
    createEnvironment(world.deps, world.call(as), createBody(id, more))
  const row = async (id: string, project = 'shop') => {
    const found = await findEnvironment(world.plane.database, { ...pathOf(id), projectId: project })
    assert.ok(found)
    return found
  }

  it('answers 202 with a pending operation and leaves row, operation, intent and event', async () => {
    const call = world.call(world.owner)
    const reply = await createEnvironment(world.deps, call, createBody('pr-41', { ttl_hours: 24 }))
    const operation = bodyOf(reply)
    assert.equal(reply.status, 202)
    assert.deepEqual(
      { ...operation, id: undefined, created_at: undefined, updated_at: undefined },
      {
        id: undefined,
        kind: 'create_environment',
        state: 'pending',
        organization_id: 'acme',
        environment: { organization_id: 'acme', project_id: 'shop', environment_id: 'pr-41' },
        attempt_count: 0,
        created_at: undefined,
        updated_at: undefined,
        result: null,
        error: null,
      },
    )
    const environment = await row('pr-41')
    assert.deepEqual([environment.phase, environment.seq, environment.uid], ['requested', 1, null])
    const kept = await findOperation(world.plane.database, 'acme', operation.id)
    assert.equal(kept?.requestId, call.requestId)
    assert.ok(kept.deadlineAt! > kept.createdAt)
    const [intent] = await pendingIntents(world.plane.database, environment.id)
    assert.deepEqual([intent?.verb, intent?.seq, intent?.operationId], ['create', 1, operation.id])
    const event = (await world.audit()).at(-1)
    assert.deepEqual(
      [event?.action, event?.actor, event?.resourceKind, event?.resourceId],
      ['create_environment', world.owner.subject, 'environment', 'shop/pr-41'],
    )
    assert.deepEqual(event?.metadata, {
      operation_id: operation.id,
      kind: 'preview',
      data_mode: 'sanitized',
      ttl_hours: 24,
      deletion_protection: false,
      deletion_policy: 'Delete',
      credential_kind: 'personal',
      credential_id: world.owner.credentialId,
      request_id: call.requestId,
      client_ip: '192.0.2.7',
    })
    assert.equal(world.woken.at(-1), environment.id)
  })

  it('writes an intent whose spec the store accepts as it is', async () => {
    await create('spec', { source_environment_id: null, deletion_policy: 'retain', deletion_protection: true })
    const [intent] = await pendingIntents(world.plane.database, (await row('spec')).id)
    const request = { id: intent?.operationId ?? '', seq: 1, verb: 'create' as const }
    const spec = { ...intent?.payload, request }
    assert.deepEqual(environmentSpec.parse(spec), spec)
    const metadata = { name: 'acme.shop.spec', namespace: 'x' }
    assert.deepEqual(environmentType.validate({ metadata, spec }, undefined), [])
    assert.deepEqual([intent?.payload['deletionPolicy'], intent?.payload['deletionProtection']], ['Retain', true])
  })

  describe('fills in what the caller left out', () => {
    const cases: readonly [
      why: string,
      body: Partial<CreateEnvironmentBody>,
      expected: { dataMode: string; ttlHours: number | null; deletionPolicy: string },
    ][] = [
      ['a preview', {}, { dataMode: 'sanitized', ttlHours: 72, deletionPolicy: 'Delete' }],
      ['ttl_hours null', { ttl_hours: null }, { dataMode: 'sanitized', ttlHours: 72, deletionPolicy: 'Delete' }],
      ['its own ttl', { ttl_hours: 1 }, { dataMode: 'sanitized', ttlHours: 1, deletionPolicy: 'Delete' }],
      ['a staging', { kind: 'staging' }, { dataMode: 'snapshot', ttlHours: null, deletionPolicy: 'Delete' }],
      [
        'a production',
        { kind: 'production', ttl_hours: null, source_environment_id: null },
        { dataMode: 'snapshot', ttlHours: null, deletionPolicy: 'Retain' },
      ],
      [
        'a data mode',
        { data_mode: 'schema_only' },
        { dataMode: 'schema_only', ttlHours: 72, deletionPolicy: 'Delete' },
      ],
    ]
    for (const [index, [why, body, expected]] of cases.entries())
      it(why, async () => {
        await create(`filled-${index}`, { source_environment_id: null, ...body })
        const { dataMode, ttlHours, deletionPolicy, region, postgresMajor, expiresAt, createdAt } = await row(
          `filled-${index}`,
        )
        assert.deepEqual({ dataMode, ttlHours, deletionPolicy }, expected)
        assert.deepEqual([region, postgresMajor], ['eu-central', 17])
        if (ttlHours === null) assert.equal(expiresAt, null)
        else assert.ok(Math.abs(expiresAt!.getTime() - createdAt.getTime() - ttlHours * HOUR_MS) < 60_000)
      })

    it('lets previews live for ever where the default is 0', async () => {
      const deps = { ...world.deps, settings: { ...world.deps.settings, previewDefaultTtlHours: 0 } }
      await createEnvironment(deps, world.call(world.owner), createBody('forever', { source_environment_id: null }))
      assert.deepEqual([(await row('forever')).ttlHours, (await row('forever')).expiresAt], [null, null])
    })
  })

  it('refuses a time to live where there is none, and a bad one', async () => {
    await assert.rejects(create('t', { kind: 'staging', ttl_hours: 4 }), isCode('ttl_not_allowed'))
    for (const ttl of [0, -1, 1.5, 8761]) await assert.rejects(create('t', { ttl_hours: ttl }), isCode('invalid_ttl'))
  })

  it('names a missing project first', async () => {
    await assert.rejects(create('x', { project_id: 'nowhere' }), isCode('project_not_found'))
  })

  it('gives an id to one of sixteen callers at once, and environment_exists to the others', async () => {
    for (let round = 0; round < sized(3, 25); round++) {
      const id = `raced-${round}`
      const results = await Promise.allSettled(
        Array.from({ length: 16 }, () => create(id, { source_environment_id: null })),
      )
      const refused = results.filter(result => result.status === 'rejected')
      assert.equal(refused.length, 15)
      for (const { reason } of refused) isCode('environment_exists')(reason)
      assert.equal((await pendingIntents(world.plane.database, (await row(id)).id)).length, 1)
    }
  })

  describe('with a production environment in the project', () => {
    before(async () => {
      await putProject(world.deps, world.call(world.owner), {
        organizationId: 'acme',
        projectId: 'with-source',
        body: { region: 'eu', postgres_major: 17 },
      })
      await create('main', { project_id: 'with-source', kind: 'production' })
    })
    const inProject = (id: string, more: Partial<CreateEnvironmentBody> = {}) =>
      create(id, { project_id: 'with-source', ...more })

    it('refuses to start empty unless asked to', async () => {
      for (const kind of ['preview', 'staging', 'production'] as const)
        await assert.rejects(
          inProject('clone', { kind }),
          isCode('data_mode_unavailable', { source_environment_id: 'main' }),
        )
      for (const data_mode of ['snapshot', 'sanitized', 'schema_only'] as const)
        await assert.rejects(inProject('clone', { data_mode }), isCode('data_mode_unavailable'))
      await inProject('empty', { source_environment_id: null })
    })

    it('refuses a named source, and says when it is not there', async () => {
      await assert.rejects(inProject('c', { source_environment_id: 'main' }), isCode('data_mode_unavailable'))
      await assert.rejects(inProject('c', { source_environment_id: 'empty' }), isCode('data_mode_unavailable'))
      await assert.rejects(inProject('c', { source_environment_id: 'nowhere' }), isCode('environment_not_found'))
    })
  })

  it('begins a new life for an id whose environment is deleted, as often as wanted', async () => {
    await create('again', { source_environment_id: null })
    const first = await row('again')
    await assert.rejects(create('again', { source_environment_id: null }), isCode('environment_exists'))
    await setPhase(world, first.id, 'deleted')
    const ids = new Set([first.id])
    for (let life = 0; life < 3; life++) {
      await create('again', { source_environment_id: null })
      const next = await row('again')
      assert.ok(!ids.has(next.id))
      assert.deepEqual([next.phase, next.uid, next.seq], ['requested', null, 1])
      ids.add(next.id)
      await deleteEnvironment(world.deps, world.call(world.owner), pathOf('again'))
    }
    const rows = await world.plane.database.rows<{ id: string }>(
      'select id from environments where environment_id = $1',
      ['again'],
    )
    assert.deepEqual(new Set(rows.map(({ id }) => id)), ids)
  })

  it('needs an admin for production of a protected project', async () => {
    await putProject(world.deps, world.call(world.owner), {
      organizationId: 'acme',
      projectId: 'guarded',
      body: { region: 'eu', postgres_major: 17, protect_production: true },
    })
    const developer = await world.user('developer')
    const production = { project_id: 'guarded', kind: 'production' as const, source_environment_id: null }
    await assert.rejects(create('live', production, developer), isCode('forbidden', { required_role: 'admin' }))
    await create('stage', { ...production, kind: 'staging' }, developer)
    await create('live', production, await world.user('admin'))
  })

  it('keeps to the caps of the plan, also when sixteen come at once', async () => {
    const caps = { environmentsPerProject: 3, environmentsPerOrganization: 5 }
    const capped = await commandWorld({ settings: { plan: { ...world.deps.settings.plan, caps } } })
    for (const projectId of ['a1', 'b1'])
      await putProject(capped.deps, capped.call(capped.owner), {
        organizationId: 'acme',
        projectId,
        body: { region: 'eu', postgres_major: 17 },
      })
    const storm = (project_id: string) =>
      Promise.allSettled(
        Array.from({ length: 16 }, (_, n) =>
          createEnvironment(capped.deps, capped.call(capped.owner), createBody(`env-${n}`, { project_id })),
        ),
      )
    for (const [project, granted, cap] of [
      ['a1', 3, 'environments_per_project'],
      ['b1', 2, 'environments_per_organization'],
    ] as const) {
      const results = await storm(project)
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, granted)
      for (const result of results) if (result.status === 'rejected') isCode('quota_exceeded', { cap })(result.reason)
    }
    await capped.stop()
  })
})
