import assert from 'node:assert/strict'
import fc from 'fast-check'
import { PHASES, type Phase } from '../../lib/model/environment.ts'
import { OPERATION_OF, SUPERSEDED } from '../../lib/model/operation.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld, createBody, pathOf, setPhase } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { pendingIntents } from '../../testkit/pending-intents.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { findEnvironment } from '../store/environments.ts'
import { claimIntent } from '../store/intents.ts'
import { findOpenOperation, findOperation, moveOperation, type OperationRow } from '../store/operations.ts'
import { environmentView } from '../views/environment-view.ts'
import type { Call, Principal, Reply } from './call.ts'
import { createEnvironment } from './create-environment.ts'
import { deleteEnvironment } from './delete-environment.ts'
import type { CommandDependencies } from './dependencies.ts'
import { putProject } from './put-project.ts'
import { readConnection } from './read-connection.ts'
import { resumeEnvironment } from './resume-environment.ts'
import { rotateCredentials } from './rotate-credentials.ts'
import { suspendEnvironment } from './suspend-environment.ts'
import { updateEnvironment } from './update-environment.ts'

type Verb = 'suspend' | 'resume' | 'rotate' | 'delete'
const VERBS: Readonly<
  Record<
    Verb,
    (deps: CommandDependencies, call: Call, path: ReturnType<typeof pathOf>) => Promise<Reply<202, OperationRecord>>
  >
> = { suspend: suspendEnvironment, resume: resumeEnvironment, rotate: rotateCredentials, delete: deleteEnvironment }

describe('the verbs of an environment', () => {
  let world: CommandWorld
  let serial = 0
  before(async () => (world = await commandWorld()))
  after(() => world.stop())

  const make = async (phase: Phase, more: Parameters<typeof createBody>[1] = {}, project = 'shop'): Promise<string> => {
    const id = `env-${++serial}`
    const body = createBody(id, { source_environment_id: null, project_id: project, ...more })
    const { id: operationId } = bodyOf(await createEnvironment(world.deps, world.call(world.owner), body))
    if (phase === 'requested') return id
    const { database } = world.plane
    await moveOperation(database, operationId, { state: 'succeeded' })
    const row = await rowOf(id, project)
    for (const intent of await pendingIntents(database, row.id)) {
      await claimIntent(database, intent.id)
      await database.rows(`update intents set state = 'dispatched' where id = $1`, [intent.id])
    }
    await setPhase(world, row.id, phase)
    return id
  }
  const rowOf = async (id: string, project = 'shop') => {
    const row = await findEnvironment(world.plane.database, { ...pathOf(id), projectId: project })
    assert.ok(row)
    return row
  }
  const run = (verb: Verb, id: string, as: Principal = world.owner, project = 'shop') =>
    VERBS[verb](world.deps, world.call(as), { ...pathOf(id), projectId: project })
  const operation = async (id: string): Promise<OperationRow> => {
    const found = await findOperation(world.plane.database, 'acme', id)
    assert.ok(found)
    return found
  }

  describe('in every phase', () => {
    const accepted: Readonly<Record<Verb, readonly Phase[]>> = {
      suspend: ['ready', 'updating', 'failed_recoverable'],
      resume: ['suspended', 'failed_recoverable'],
      rotate: ['ready'],
      delete: ['requested', 'provisioning', 'ready', 'suspended', 'updating', 'failed_recoverable'],
    }
    for (const verb of ['suspend', 'resume', 'rotate', 'delete'] as const)
      for (const phase of PHASES) {
        if (phase === 'requested') continue // its create is open: below
        it(`${verb} when ${phase}`, async () => {
          const id = await make(phase)
          if (accepted[verb].includes(phase)) {
            const record = bodyOf(await run(verb, id))
            assert.deepEqual([record.kind, record.state], [OPERATION_OF[verb], 'pending'])
            const row = await rowOf(id)
            const [intent] = await pendingIntents(world.plane.database, row.id)
            assert.deepEqual(
              [intent?.verb, intent?.seq, intent?.payload],
              [verb, row.seq, verb === 'rotate' ? intent?.payload : {}],
            )
            if (verb === 'rotate') assert.match(String(intent?.payload['credentialsRotation']), /^rot_/)
            const event = (await world.audit()).at(-1)
            assert.deepEqual([event?.action, event?.metadata['operation_id']], [OPERATION_OF[verb], record.id])
            assert.equal(world.woken.at(-1), row.id)
          } else {
            const events = (await world.audit()).length
            const expected = phase === 'deleting' ? isCode('operation_in_progress') : isCode('invalid_phase', { phase })
            await assert.rejects(run(verb, id), expected)
            assert.equal((await world.audit()).length, events)
          }
        })
      }
  })

  it('resumes what a suspension that ran out of time still wants suspended', async () => {
    const id = await make('ready')
    await assert.rejects(run('resume', id), isCode('invalid_phase'))
    await setPhase(world, (await rowOf(id)).id, 'ready', { suspendedWanted: true })
    assert.equal((await run('resume', id)).status, 202)
  })

  it('lets nobody but a delete come while an operation is open, and numbers the requests', async () => {
    const id = await make('ready')
    const first = bodyOf(await run('suspend', id))
    for (const verb of ['suspend', 'resume'] as const)
      await assert.rejects(run(verb, id), isCode('operation_in_progress', { operation_id: first.id }))
    const removal = bodyOf(await run('delete', id))
    const ended = await operation(first.id)
    assert.deepEqual([ended.state, ended.error], ['failed', SUPERSEDED])
    assert.deepEqual([(await operation(removal.id)).seq, (await rowOf(id)).seq], [3, 3])
    await assert.rejects(run('delete', id), isCode('operation_in_progress', { operation_id: removal.id }))
    assert.equal((await world.audit()).at(-1)?.metadata['superseded_operation_id'], first.id)
  })

  it('shows an environment as deleting from the answer of its delete on', async () => {
    const id = await make('ready')
    assert.equal(environmentView(await rowOf(id)).phase, 'ready')
    await run('delete', id)
    assert.equal(environmentView(await rowOf(id)).phase, 'deleting')
  })

  it('waits for a migration or an import that runs, also with a delete', async () => {
    const id = await make('ready')
    await world.plane.database.rows(
      `insert into operations (id, kind, state, organization_id, project_id, environment_id, environment_row, seq, actor, request_id)
       select 'op_01234567890123456789' || lpad($2::text, 6, '0'), 'run_migrations', 'running', organization_id, project_id, environment_id, id, 99, 'x', 'y'
       from environments where id = $1`,
      [(await rowOf(id)).id, serial],
    )
    for (const verb of ['suspend', 'delete'] as const)
      await assert.rejects(run(verb, id), isCode('operation_in_progress'))
  })

  describe('a delete that comes before the create was carried', () => {
    it('cancels it and is over at once', async () => {
      const id = await make('requested')
      const { id: rowId } = await rowOf(id)
      const creation = await findOpenOperation(world.plane.database, rowId)
      const record = bodyOf(await run('delete', id))
      assert.deepEqual([record.state, record.result], ['succeeded', { environment_id: id, phase: 'deleted' }])
      assert.deepEqual([(await operation(creation!.id)).error, (await rowOf(id)).phase], [SUPERSEDED, 'deleted'])
      assert.deepEqual(await pendingIntents(world.plane.database, rowId), [])
      await assert.rejects(run('delete', id), isCode('invalid_phase', { phase: 'deleted' }))
    })

    it('queues behind it once somebody may have carried it', async () => {
      const id = await make('requested')
      const row = await rowOf(id)
      const [creation] = await pendingIntents(world.plane.database, row.id)
      await claimIntent(world.plane.database, creation!.id)
      assert.equal(bodyOf(await run('delete', id)).state, 'pending')
      const pending = await pendingIntents(world.plane.database, row.id)
      assert.deepEqual(
        pending.map(({ verb }) => verb),
        ['create', 'delete'],
      )
    })

    it('never cancels a create that is being claimed in the same moment', async () => {
      for (let round = 0; round < sized(10, 100); round++) {
        const id = await make('requested')
        const row = await rowOf(id)
        const [creation] = await pendingIntents(world.plane.database, row.id)
        const [claimed, removed] = await Promise.all([
          claimIntent(world.plane.database, creation!.id),
          run('delete', id),
        ])
        // Either the dispatcher has it, and the delete comes after it; or nobody will ever carry it.
        assert.equal(bodyOf(removed).state, claimed === undefined ? 'succeeded' : 'pending')
      }
    })
  })

  describe('racing', () => {
    it('leave exactly one open operation, whoever wins, and every loser an answer', async () => {
      const other = world.secondProcess()
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom<Verb>('suspend', 'resume', 'delete'), { minLength: 2, maxLength: 10 }),
          fc.constantFrom<Phase>('ready', 'failed_recoverable', 'suspended'),
          async (verbs, phase) => {
            const id = await make(phase)
            const results = await Promise.allSettled(
              verbs.map((verb, n) =>
                VERBS[verb](n % 2 === 0 ? world.deps : other, world.call(world.owner), pathOf(id)),
              ),
            )
            const won = results.flatMap(result => (result.status === 'fulfilled' ? [bodyOf(result.value)] : []))
            for (const result of results)
              if (result.status === 'rejected')
                assert.ok(
                  ['operation_in_progress', 'invalid_phase'].includes(result.reason.code),
                  String(result.reason),
                )
            const operations = await Promise.all(won.map(({ id: operationId }) => operation(operationId)))
            const open = operations.filter(({ state }) => state === 'pending')
            const deletes = operations.filter(({ kind }) => kind === 'delete_environment')
            assert.equal(deletes.length, verbs.includes('delete') ? 1 : 0)
            assert.ok(won.length - deletes.length <= 1, 'two requests beside a delete were both accepted')
            if (won.length > 0) assert.equal(open.length, 1)
            if (deletes.length === 1) {
              assert.equal(open[0]?.id, deletes[0]?.id)
              for (const ended of operations.filter(({ state }) => state === 'failed'))
                assert.equal(ended.error, SUPERSEDED)
            }
            const seqs = operations.map(({ seq }) => seq)
            assert.deepEqual(
              [...seqs].sort((a, b) => a - b),
              Array.from({ length: seqs.length }, (_, n) => n + 2),
            )
            assert.equal((await world.actionsOn(`shop/${id}`)).length, won.length + 1)
          },
        ),
        { numRuns: sized(15, 120) },
      )
    }).timeout(60_000)
  })

  describe('who may', () => {
    it('every verb names what is missing, the parent first', async () => {
      const calls = (path: ReturnType<typeof pathOf>) => [
        () => suspendEnvironment(world.deps, world.call(world.owner), path),
        () => resumeEnvironment(world.deps, world.call(world.owner), path),
        () => deleteEnvironment(world.deps, world.call(world.owner), path),
        () => updateEnvironment(world.deps, world.call(world.owner), path, { deletion_policy: 'retain' }),
        () => readConnection(world.deps, world.call(world.owner), path),
      ]
      for (const call of calls(pathOf('nowhere'))) await assert.rejects(call(), isCode('environment_not_found'))
      for (const call of calls({ ...pathOf('nowhere'), projectId: 'none' }))
        await assert.rejects(call(), isCode('project_not_found'))
    })

    it('production of a protected project needs an admin for each verb; other kinds and projects do not', async () => {
      await putProject(world.deps, world.call(world.owner), {
        organizationId: 'acme',
        projectId: 'vault',
        body: { region: 'eu', postgres_major: 17, protect_production: true },
      })
      const developer = await world.user('developer')
      const guarded = await make('ready', { kind: 'production' }, 'vault')
      const open = await make('ready', { kind: 'staging' }, 'vault')
      for (const verb of ['suspend', 'resume', 'delete'] as const)
        await assert.rejects(run(verb, guarded, developer, 'vault'), isCode('forbidden', { required_role: 'admin' }))
      await assert.rejects(
        readConnection(world.deps, world.call(developer), { ...pathOf(guarded), projectId: 'vault' }),
        isCode('forbidden'),
      )
      assert.equal((await run('suspend', open, developer, 'vault')).status, 202)
      assert.equal((await run('suspend', guarded, await world.user('admin'), 'vault')).status, 202)
    })
  })

  describe('readConnection', () => {
    const endpoint = { host: '127.0.0.1', port: 20001, sslmode: 'disable' }

    it('records who read before anybody is told', async () => {
      const id = await make('ready')
      await assert.rejects(readConnection(world.deps, world.call(world.owner), pathOf(id)), isCode('invalid_phase'))
      const { id: rowId, uid } = await rowOf(id)
      await world.plane.database.rows('update environments set status = $2::jsonb where id = $1', [
        rowId,
        JSON.stringify({ endpoint }),
      ])
      const call = world.call(world.owner)
      const found = await readConnection(world.deps, call, pathOf(id))
      assert.deepEqual([found.uid, found.status.endpoint], [uid, endpoint])
      const event = (await world.audit()).at(-1)
      assert.deepEqual([event?.action, event?.resourceId], ['read_connection', `shop/${id}`])
      assert.equal(event?.metadata['request_id'], call.requestId)
      await run('delete', id)
      await assert.rejects(
        readConnection(world.deps, world.call(world.owner), pathOf(id)),
        isCode('invalid_phase', { phase: 'deleting' }),
      )
    })
  })
})
