import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Condition } from '../../crds/conditions.ts'
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
import type { AnswerOf } from '../contract/route.ts'
import type { Routes } from '../contract/routes.ts'

type ListEnvironmentsAnswer = AnswerOf<Routes['listEnvironments']>

describe('environments', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer()
    team = await makeTeam(api)
  })
  after(() => api.stop())

  describe('happy', () => {
    it('createEnvironment answers 202 with a pending operation that succeeds', async () => {
      const answer = await team.developer.call('createEnvironment', { body: creation('first') })
      assert.equal(answer.status, 202)
      assert.deepEqual(
        [answer.body.state, answer.body.kind, answer.body.attempt_count],
        ['pending', 'create_environment', 0],
      )
      assert.deepEqual(answer.body.environment, { organization_id: ORG, project_id: PROJECT, environment_id: 'first' })
      assert.equal(answer.headers.get('location'), `/v1/operations/${answer.body.id}`)
      assert.equal(answer.headers.get('retry-after'), '1')
      const done = await finished(team.developer, answer.body.id)
      assert.deepEqual([done.state, done.error], ['succeeded', null])
      assert.equal(await phaseOf(team.viewer, 'first'), 'ready')
    })

    it('getEnvironment shows defaults, and expiry for previews only', async () => {
      await created(team.developer, 'preview', { kind: 'preview', ttl_hours: 2 })
      await created(team.developer, 'forever', { kind: 'preview', ttl_hours: null })
      const preview = await team.viewer.call('getEnvironment', { params: at('preview') })
      assert.equal(preview.body.ttl_hours, 2)
      const inTwoHours = Date.now() / 1000 + 2 * 3600
      assert.ok(Math.abs((preview.body.expires_at_epoch_seconds ?? 0) - inTwoHours) < 60)
      assert.deepEqual(
        [preview.body.data_mode, preview.body.region, preview.body.deletion_policy, preview.body.deletion_protection],
        ['sanitized', 'local', 'delete', false],
      )
      const forever = await team.viewer.call('getEnvironment', { params: at('forever') })
      assert.equal(forever.body.ttl_hours, 72, 'null asks for the server’s default, as leaving it out does')
      const first = await team.viewer.call('getEnvironment', { params: at('first') })
      assert.equal('ttl_hours' in first.body, false)
      assert.equal('expires_at_epoch_seconds' in first.body, false)
    })

    it('listEnvironments pages through all of them, once each, oldest first', async () => {
      for (const id of ['list-a', 'list-b', 'list-c']) await created(team.developer, id)
      const seen: string[] = []
      let after: string | null = null
      do {
        const query = { organization_id: ORG, project_id: PROJECT, limit: 2, ...(after === null ? {} : { after }) }
        const body: ListEnvironmentsAnswer = (await team.viewer.call('listEnvironments', { query })).body
        seen.push(...body.environments.map((each: { environment_id: string }) => each.environment_id))
        after = body.next_cursor
      } while (after !== null)
      assert.deepEqual(seen, [...new Set(seen)])
      assert.deepEqual(seen.slice(0, 3), ['first', 'preview', 'forever'])
      assert.deepEqual(seen.slice(-3), ['list-a', 'list-b', 'list-c'])
    })

    it('suspend and resume come to their ends', async () => {
      const suspend = await team.developer.call('suspendEnvironment', { params: at('first') })
      assert.equal((await finished(team.developer, suspend.body.id)).state, 'succeeded')
      assert.equal(await phaseOf(team.viewer, 'first'), 'suspended')
      const again = await team.developer.call('suspendEnvironment', { params: at('first') })
      assert.deepEqual([again.status, again.body.code], [409, 'invalid_phase'])
      assert.equal((again.body as { phase?: string }).phase, 'suspended')
      const resume = await team.developer.call('resumeEnvironment', { params: at('first') })
      assert.equal((await finished(team.developer, resume.body.id)).state, 'succeeded')
      assert.equal(await phaseOf(team.viewer, 'first'), 'ready')
    })

    it('renewEnvironment counts from now and takes effect before its answer', async () => {
      const { status, body } = await team.developer.call('renewEnvironment', {
        params: at('preview'),
        body: { ttl_hours: 48 },
        key: null,
      })
      assert.equal(status, 200)
      assert.equal(body.ttl_hours, 48)
      const resource = await api.resource(ORG, PROJECT, 'preview')
      assert.equal(Math.floor(Date.parse(resource?.spec.expiresAt ?? '') / 1000), body.expires_at_epoch_seconds)
    })

    it('getEnvironment warns of what the operator warns of, also while it is ready', async () => {
      const before = await team.viewer.call('getEnvironment', { params: at('preview') })
      assert.deepEqual(before.body.warnings, [])
      const resource = await api.resource(ORG, PROJECT, 'preview')
      assert.ok(resource)
      const expiring: Condition = {
        type: 'Expiring',
        status: 'True',
        reason: 'ExpiresSoon',
        message: 'Soon',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }
      const status = { ...resource.status, expiresAt: resource.spec.expiresAt!, conditions: [expiring] }
      await api.store.patchStatus(environmentType, resource.metadata, status, { uid: resource.metadata.uid })
      let warnings: unknown = []
      while (isDeepStrictEqual(warnings, []))
        warnings = (await team.viewer.call('getEnvironment', { params: at('preview') })).body.warnings
      assert.deepEqual(warnings, [{ reason: 'ExpiresSoon', message: 'Soon' }])
      const renewed = await team.developer.call('renewEnvironment', { params: at('preview'), body: { ttl_hours: 99 } })
      assert.deepEqual(renewed.body.warnings, [])
    })

    it('updateEnvironment protects from deletion until it is undone', async () => {
      const patch = (deletion_protection: boolean) =>
        team.developer.call('updateEnvironment', { params: at('list-a'), body: { deletion_protection } })
      assert.equal((await patch(true)).body.deletion_protection, true)
      const refused = await team.developer.call('deleteEnvironment', { params: at('list-a') })
      assert.deepEqual([refused.status, refused.body.code], [409, 'deletion_protected'])
      assert.equal((await patch(false)).status, 200)
      const accepted = await team.developer.call('deleteEnvironment', { params: at('list-a') })
      assert.equal(accepted.status, 202)
      assert.equal(await phaseOf(team.viewer, 'list-a'), 'deleting', 'nobody sees ready again')
      assert.equal((await finished(team.developer, accepted.body.id)).state, 'succeeded')
      assert.equal(await phaseOf(team.viewer, 'list-a'), 'deleted')
    })
  })

  describe('error', () => {
    const creations: readonly (readonly [string, Readonly<Record<string, unknown>>, number, string])[] = [
      ['an id that is taken', { environment_id: 'list-b' }, 409, 'environment_exists'],
      ['an unknown project', { project_id: 'nowhere' }, 404, 'project_not_found'],
      ['ttl_hours of 0', { kind: 'preview', ttl_hours: 0 }, 400, 'invalid_ttl'],
      ['ttl_hours of -1', { kind: 'preview', ttl_hours: -1 }, 400, 'invalid_ttl'],
      ['ttl_hours of 1.5', { kind: 'preview', ttl_hours: 1.5 }, 400, 'invalid_ttl'],
      ['ttl_hours as text', { kind: 'preview', ttl_hours: '5' }, 400, 'invalid_ttl'],
      ['ttl_hours over a year', { kind: 'preview', ttl_hours: 8761 }, 400, 'invalid_ttl'],
      ['ttl_hours for staging', { ttl_hours: 5 }, 400, 'ttl_not_allowed'],
      ['Postgres 16', { postgres_major: 16 }, 400, 'unsupported_postgres_major'],
      ['an unknown kind', { kind: 'testing' }, 400, 'validation_failed'],
      ['a bad id', { environment_id: 'Upper' }, 400, 'validation_failed'],
      ['a source that is not there', { source_environment_id: 'nowhere' }, 404, 'environment_not_found'],
      ['a source that would have to be cloned', { source_environment_id: 'list-b' }, 422, 'data_mode_unavailable'],
    ]
    for (const [why, more, status, code] of creations)
      it(`createEnvironment refuses ${why} with ${status} ${code}`, async () => {
        const answer = await team.developer.call('createEnvironment', { body: creation('unborn', more) })
        assert.deepEqual([answer.status, answer.body.code], [status, code])
        const after = await team.viewer.call('getEnvironment', { params: at('unborn') })
        assert.equal(after.body.code, 'environment_not_found')
      })

    it('names the missing parent first', async () => {
      const answer = await team.viewer.call('getEnvironment', { params: { ...at('x1'), project: 'nowhere' } })
      assert.deepEqual([answer.status, answer.body.code], [404, 'project_not_found'])
      const list = await team.viewer.call('listEnvironments', {
        query: { organization_id: ORG, project_id: 'nowhere' },
      })
      assert.deepEqual([list.status, list.body.code], [404, 'project_not_found'])
    })

    for (const ttl of [0, -5, 1.5, 9000, '24', null])
      it(`renewEnvironment refuses ttl_hours ${JSON.stringify(ttl)} with invalid_ttl`, async () => {
        const answer = await team.developer.call('renewEnvironment', {
          params: at('preview'),
          body: { ttl_hours: ttl },
        })
        assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_ttl'])
      })

    it('renewEnvironment is for previews', async () => {
      const answer = await team.developer.call('renewEnvironment', { params: at('first'), body: { ttl_hours: 1 } })
      assert.deepEqual([answer.status, answer.body.code], [409, 'not_a_preview'])
    })

    it('what is set at creation cannot be changed: each field is named, and nothing is made anew', async () => {
      await created(team.developer, 'fixed', { kind: 'preview' })
      const before = await api.resource(ORG, PROJECT, 'fixed')
      for (const [field, value] of Object.entries({
        kind: 'production',
        data_mode: 'snapshot',
        region: 'elsewhere',
        postgres_major: 17,
        environment_id: 'other',
        source_environment_id: null,
        ttl_hours: 5,
      })) {
        const body = { deletion_policy: 'retain', [field]: value }
        const answer = await team.owner.call('updateEnvironment', { params: at('fixed'), body })
        assert.deepEqual([answer.status, answer.body.code], [400, 'validation_failed'], field)
        assert.equal(answer.body.errors?.[0]?.pointer, `#/${field}`)
      }
      // Asked for as if it were new, by another kind: it is there already.
      const again = await team.owner.call('createEnvironment', { body: creation('fixed', { kind: 'production' }) })
      assert.deepEqual([again.status, again.body.code], [409, 'environment_exists'])
      assert.deepEqual(await api.resource(ORG, PROJECT, 'fixed'), before)
    })

    it('a change of nothing is refused', async () => {
      const answer = await team.developer.call('updateEnvironment', { params: at('first'), body: {} })
      assert.deepEqual([answer.status, answer.body.code], [400, 'validation_failed'])
    })

    it('a deleted environment can be read, not deleted again, and its id can be used again', async () => {
      const { body } = await team.developer.call('deleteEnvironment', { params: at('list-c') })
      await finished(team.developer, body.id)
      const again = await team.developer.call('deleteEnvironment', { params: at('list-c') })
      assert.deepEqual([again.status, again.body.code], [409, 'invalid_phase'])
      const list = await team.viewer.call('listEnvironments', { query: { organization_id: ORG } })
      assert.ok(!list.body.environments.some((each: { environment_id: string }) => each.environment_id === 'list-c'))
      assert.equal((await created(team.developer, 'list-c')).state, 'succeeded')
      assert.equal(await phaseOf(team.viewer, 'list-c'), 'ready')
    })
  })

  describe('idempotency', () => {
    it('a repeated create is answered with the same bytes and makes one environment', async () => {
      const request = { body: creation('once'), key: 'create-once' }
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => team.developer.call('createEnvironment', request)),
      )
      assert.deepEqual(new Set(answers.map(answer => `${answer.status} ${answer.text}`)).size, 1)
      assert.equal(answers.filter(answer => answer.headers.get('idempotency-replayed') === 'true').length, 5)
      assert.equal(new Set(answers.map(answer => answer.headers.get('location'))).size, 1)
    })

    it('a quoted key is the same key, and the order of fields does not matter', async () => {
      const body = Object.fromEntries(Object.entries(creation('once')).reverse())
      const answer = await team.developer.call('createEnvironment', { body, key: '"create-once"' })
      assert.deepEqual([answer.status, answer.headers.get('idempotency-replayed')], [202, 'true'])
    })

    it('another payload under the same key is 422, another key 409', async () => {
      const other = await team.developer.call('createEnvironment', { body: creation('twice'), key: 'create-once' })
      assert.deepEqual([other.status, other.body.code], [422, 'idempotency_key_reused'])
      const second = await team.developer.call('createEnvironment', { body: creation('once') })
      assert.deepEqual([second.status, second.body.code], [409, 'environment_exists'])
    })

    it('a refusal is repeated as it was, also when it no longer holds', async () => {
      const request = { params: at('later'), key: 'suspend-later' }
      const first = await team.developer.call('suspendEnvironment', request)
      assert.equal(first.body.code, 'environment_not_found')
      await created(team.developer, 'later')
      const again = await team.developer.call('suspendEnvironment', request)
      assert.equal(again.text, first.text)
      assert.equal(again.headers.get('idempotency-replayed'), 'true')
    })

    it('keys belong to their caller', async () => {
      const answer = await team.admin.call('createEnvironment', { body: creation('twice'), key: 'create-once' })
      assert.equal(answer.status, 202)
    })

    for (const id of ['createEnvironment', 'suspendEnvironment', 'deleteEnvironment', 'updateEnvironment'] as const)
      it(`${id} needs a key`, async () => {
        const body = id === 'createEnvironment' ? creation('keyless') : { deletion_protection: false }
        const answer = await team.developer.call(id, {
          params: at('first'),
          key: null,
          ...(id.endsWith('dEnvironment') || id === 'deleteEnvironment' ? {} : { body }),
        })
        assert.deepEqual([answer.status, answer.body.code], [400, 'idempotency_key_required'])
      })
  })

  describe('security', () => {
    it('a stranger finds nothing, whether it is there or not', async () => {
      const [there, absent] = await Promise.all(
        ['first', 'nowhere'].map(env => team.outsider.call('getEnvironment', { params: at(env) })),
      )
      assert.deepEqual([there?.status, there?.body.code], [404, 'organization_not_found'])
      assert.equal(absent?.body.detail, there?.body.detail)
      const list = await team.outsider.call('listEnvironments', { query: { organization_id: ORG } })
      assert.equal(list.body.code, 'organization_not_found')
      const make = await team.outsider.call('createEnvironment', { body: creation('mine') })
      assert.equal(make.body.code, 'organization_not_found')
    })

    it('a viewer reads and changes nothing', async () => {
      const answer = await team.viewer.call('suspendEnvironment', { params: at('first') })
      assert.deepEqual([answer.status, answer.body.code], [403, 'forbidden'])
      assert.equal((answer.body as { required_role?: string }).required_role, 'developer')
      assert.equal(await phaseOf(team.viewer, 'first'), 'ready')
    })

    it('only an admin says what becomes of production’s data, in any project', async () => {
      const made = await team.developer.call('createEnvironment', { body: creation('live', { kind: 'production' }) })
      await finished(team.developer, made.body.id)
      const body = { deletion_policy: 'delete', deletion_protection: false } as const
      const refused = await team.developer.call('updateEnvironment', { params: at('live'), body })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
      const { body: kept } = await team.developer.call('getEnvironment', { params: at('live') })
      assert.equal(kept.deletion_policy, 'retain')
      assert.equal((await team.admin.call('updateEnvironment', { params: at('live'), body })).status, 200)
    })

    it('a protected project lets only admins touch production', async () => {
      await team.admin.call('putProject', {
        params: { org: ORG, project: 'vault' },
        body: { region: 'local', postgres_major: 17, protect_production: true },
      })
      const body = { ...creation('main', { kind: 'production' }), project_id: 'vault' }
      const params = { ...at('main'), project: 'vault' }
      const refused = await team.developer.call('createEnvironment', { body })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
      const made = await team.admin.call('createEnvironment', { body })
      await finished(team.admin, made.body.id)
      for (const id of ['suspendEnvironment', 'deleteEnvironment', 'getConnection'] as const) {
        const answer = await team.developer.call(id, { params })
        assert.deepEqual([id, answer.status, answer.body.code], [id, 403, 'forbidden'])
      }
      assert.equal((await team.developer.call('getEnvironment', { params })).body.deletion_policy, 'retain')
    })
  })
})
