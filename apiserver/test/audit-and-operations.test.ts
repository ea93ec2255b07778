import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import {
  type ApiTeam,
  at,
  created,
  creation,
  finished,
  makeTeam,
  ORG,
  PROJECT,
  phaseOf,
} from '../../testkit/api-team.ts'
import type { AuditEventRecord } from '../contract/audit-events.ts'
import type { AnswerOf } from '../contract/route.ts'
import type { Routes } from '../contract/routes.ts'

type ListOperationsAnswer = AnswerOf<Routes['listOperations']>

const HEADER = { 'X-Service-Organization-ID': ORG }

describe('audit events and operations', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer()
    team = await makeTeam(api)
  })
  after(() => api.stop())

  /** All events, read by following the cursor. */
  const everything = async (limit = 3): Promise<AuditEventRecord[]> => {
    const events: AuditEventRecord[] = []
    for (let after: number | null = 0; after !== null; ) {
      const answer: { events: AuditEventRecord[]; next_cursor: number | null } = (
        await team.admin.call('listAuditEvents', { params: { org: ORG }, query: { after, limit } })
      ).body
      events.push(...answer.events)
      after = answer.next_cursor
    }
    return events
  }

  describe('audit events', () => {
    it('equal what was done, in order, numbered without gaps', async () => {
      const before = await everything()
      await created(team.developer, 'audited', { kind: 'preview', ttl_hours: 5 })
      await team.developer.call('renewEnvironment', { params: at('audited'), body: { ttl_hours: 7 } })
      await team.developer.call('updateEnvironment', { params: at('audited'), body: { deletion_policy: 'retain' } })
      const suspend = await team.developer.call('suspendEnvironment', { params: at('audited') })
      await finished(team.developer, suspend.body.id)
      const remove = await team.developer.call('deleteEnvironment', { params: at('audited') })
      await finished(team.developer, remove.body.id)
      const events = await everything()
      assert.deepEqual(
        events.map(event => event.id),
        events.map((_event, index) => index + 1),
      )
      const fresh = events.slice(before.length)
      assert.deepEqual(
        fresh.map(event => event.action),
        ['create_environment', 'renew_environment', 'update_environment', 'suspend_environment', 'delete_environment'],
      )
      for (const event of fresh) {
        assert.equal(event.actor, `user:${team.developer.userId}`)
        assert.equal(event.resource_id, 'shop/audited')
        assert.equal(event.metadata['credential_id'], team.developer.tokenId)
        assert.match(String(event.metadata['request_id']), /^[0-9a-f-]{36}$/)
        assert.equal(event.metadata['client_ip'], '127.0.0.1')
      }
    })

    it('carry the request id that the caller chose', async () => {
      const headers = { 'X-Request-Id': 'my-request.42' }
      const answer = await team.developer.call('createEnvironment', { body: creation('traced'), headers })
      assert.equal(answer.headers.get('x-request-id'), 'my-request.42')
      const last = (await everything()).at(-1)
      assert.equal(last?.metadata['request_id'], 'my-request.42')
      assert.ok(api.logged.some(line => line.includes('my-request.42') && line.includes(answer.body.id)))
      await finished(team.developer, answer.body.id)
    })

    it('stand in the log of a refusal, with whose credential was refused what', async () => {
      const id = `refused.${randomUUID()}`
      const refused = await team.viewer.call('createInvitation', {
        params: { org: ORG },
        body: { email: 'ada@example.com', role: 'viewer' },
        headers: { 'X-Request-Id': id },
      })
      assert.equal(refused.status, 403)
      const lines = () => api.logged.filter(line => line.includes(id))
      while (lines().length === 0) await sleep(5)
      const [line] = lines().map(each => JSON.parse(each) as Record<string, unknown>)
      assert.deepEqual(
        [line?.['status'], line?.['route'], line?.['method'], line?.['credential_id']],
        [403, '/v1/organizations/{org}/invitations', 'POST', team.viewer.tokenId],
      )
    })

    it('do not grow by refused calls or reads', async () => {
      const before = (await everything()).length
      await team.viewer.call('suspendEnvironment', { params: at('traced') })
      await team.developer.call('createEnvironment', { body: creation('traced') })
      await team.viewer.call('getEnvironment', { params: at('traced') })
      assert.equal((await everything()).length, before)
    })

    it('are for admins, and a stranger’s organization holds others', async () => {
      const refused = await team.developer.call('listAuditEvents', { params: { org: ORG } })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
      const stranger = await team.outsider.call('listAuditEvents', { params: { org: ORG } })
      assert.equal(stranger.status, 404)
      const own = await team.outsider.call('listAuditEvents', { params: { org: 'other' } })
      assert.ok(own.body.events.every(event => event.organization_id === 'other'))
    })

    for (const query of [{ limit: 0 }, { limit: 201 }, { after: -1 }, { after: '1e3' }, { after: '9'.repeat(20) }])
      it(`refuse ${JSON.stringify(query)}`, async () => {
        const answer = await team.admin.call('listAuditEvents', { params: { org: ORG }, query })
        assert.deepEqual([answer.status, answer.body.code], [400, 'validation_failed'])
      })
  })

  describe('operations', () => {
    it('need the organization’s header', async () => {
      const operation = await created(team.developer, 'polled')
      const params = { operation: operation.id }
      const missing = await team.viewer.call('getOperation', { params })
      assert.deepEqual([missing.status, missing.body.code], [400, 'organization_header_required'])
      const bad = await team.viewer.call('getOperation', { params, headers: { 'X-Service-Organization-ID': 'A!' } })
      assert.deepEqual([bad.status, bad.body.code], [400, 'validation_failed'])
      const good = await team.viewer.call('getOperation', { params, headers: HEADER })
      assert.deepEqual([good.body.id, good.body.state], [operation.id, 'succeeded'])
    })

    it('of another organization are not found, with either header', async () => {
      const operation = await created(team.developer, 'hidden')
      const params = { operation: operation.id }
      const own = await team.outsider.call('getOperation', {
        params,
        headers: { 'X-Service-Organization-ID': 'other' },
      })
      assert.deepEqual([own.status, own.body.code], [404, 'operation_not_found'])
      const foreign = await team.outsider.call('getOperation', { params, headers: HEADER })
      assert.deepEqual([foreign.status, foreign.body.code], [404, 'organization_not_found'])
    })

    it('are listed by their environment, newest first, page by page, over all its lives', async () => {
      await created(team.developer, 'busy')
      for (const verb of ['suspendEnvironment', 'resumeEnvironment', 'deleteEnvironment'] as const) {
        const { body } = await team.developer.call(verb, { params: at('busy') })
        await finished(team.developer, body.id)
      }
      await created(team.developer, 'busy')
      const seen: string[] = []
      let after: string | null = null
      do {
        const query = { limit: 2, ...(after === null ? {} : { after }) }
        const body: ListOperationsAnswer = (await team.viewer.call('listOperations', { params: at('busy'), query }))
          .body
        seen.push(...body.operations.map(({ kind, state }) => `${kind} ${state}`))
        after = body.next_cursor
      } while (after !== null)
      assert.deepEqual(
        seen,
        ['create', 'delete', 'resume', 'suspend', 'create'].map(verb => `${verb}_environment succeeded`),
      )
    })

    it('list what deleted an environment without a call, which its audit event names', async () => {
      await created(team.developer, 'taken')
      const resource = await api.resource(ORG, PROJECT, 'taken')
      assert.ok(resource)
      await api.store.delete(environmentType, resource.metadata, { uid: resource.metadata.uid })
      while ((await phaseOf(team.viewer, 'taken')) !== 'deleted');
      const { body } = await team.viewer.call('listOperations', { params: at('taken') })
      const [removal] = body.operations
      assert.equal(removal?.kind, 'delete_environment')
      const event = (await everything()).at(-1)
      assert.deepEqual([event?.action, event?.metadata['operation_id']], ['delete_environment', removal.id])
    })

    it('of an unknown environment, project or organization are not found', async () => {
      const outcome = async (params: ReturnType<typeof at>, by = team.viewer) => {
        const { status, body } = await by.call('listOperations', { params })
        return [status, body.code]
      }
      assert.deepEqual(await outcome(at('nowhere')), [404, 'environment_not_found'])
      assert.deepEqual(await outcome({ ...at('nowhere'), project: 'none' }), [404, 'project_not_found'])
      assert.deepEqual(await outcome(at('busy'), team.outsider), [404, 'organization_not_found'])
    })

    it('outlive their environments', async () => {
      const operation = await created(team.developer, 'mortal')
      const remove = await team.developer.call('deleteEnvironment', { params: at('mortal') })
      await finished(team.developer, remove.body.id)
      const { body } = await team.viewer.call('getOperation', { params: { operation: operation.id }, headers: HEADER })
      assert.equal(body.state, 'succeeded')
    })
  })
})
