import assert from 'node:assert/strict'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, created, creation, finished, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'

const BODY = { region: 'eu-central', postgres_major: 17 }

describe('projects', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ environment: { SERVICE_PLAN_MAX_PROJECTS: '3' } })
    team = await makeTeam(api)
  })
  after(() => api.stop())

  const params = (project: string) => ({ org: ORG, project })

  it('putProject creates and updates, answering the same record shape', async () => {
    const made = await team.developer.call('putProject', { params: params('site'), body: BODY })
    assert.deepEqual([made.status, made.body.region, made.body.protect_production], [200, 'eu-central', false])
    const changed = await team.developer.call('putProject', { params: params('site'), body: { ...BODY, region: 'us' } })
    assert.deepEqual([changed.body.region, changed.body.created_at], ['us', made.body.created_at])
    assert.deepEqual((await team.viewer.call('getProject', { params: params('site') })).body, changed.body)
  })

  it('listProjects names them, oldest first', async () => {
    const { body } = await team.viewer.call('listProjects', { params: { org: ORG } })
    assert.deepEqual(
      body.projects.map(each => each.project_id),
      [PROJECT, 'site'],
    )
  })

  for (const [why, more, code] of [
    ['Postgres 16', { postgres_major: 16 }, 'unsupported_postgres_major'],
    ['a fraction of a Postgres', { postgres_major: 17.5 }, 'validation_failed'],
    ['a region of NUL', { region: '\u0000' }, 'validation_failed'],
    ['an empty region', { region: '' }, 'validation_failed'],
    ['a namespace from outside', { namespace: 'svc-other' }, 'validation_failed'],
  ] as const)
    it(`putProject refuses ${why}`, async () => {
      const answer = await team.developer.call('putProject', { params: params('bad'), body: { ...BODY, ...more } })
      assert.deepEqual([answer.status, answer.body.code], [400, code])
      assert.equal((await team.viewer.call('getProject', { params: params('bad') })).body.code, 'project_not_found')
    })

  it('putProject refuses one more than the plan allows, and still updates those that are there', async () => {
    assert.equal((await team.developer.call('putProject', { params: params('third'), body: BODY })).status, 200)
    const fourth = await team.developer.call('putProject', { params: params('fourth'), body: BODY })
    assert.deepEqual([fourth.status, fourth.body.code], [422, 'quota_exceeded'])
    assert.equal((await team.developer.call('putProject', { params: params('third'), body: BODY })).status, 200)
  })

  it('only an admin says whether production is protected', async () => {
    const body = { ...BODY, protect_production: true }
    const refused = await team.developer.call('putProject', { params: params('site'), body })
    assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
    assert.equal((await team.admin.call('putProject', { params: params('site'), body })).body.protect_production, true)
    const kept = await team.developer.call('putProject', { params: params('site'), body: BODY })
    assert.equal(kept.body.protect_production, true, 'left out, it stays')
  })

  it('deleteProject waits for its environments to be gone', async () => {
    await created(team.developer, 'last')
    const refused = await team.admin.call('deleteProject', { params: params(PROJECT) })
    assert.deepEqual([refused.status, refused.body.code], [409, 'project_has_environments'])
    const { body } = await team.developer.call('deleteEnvironment', { params: { ...params(PROJECT), env: 'last' } })
    await finished(team.developer, body.id)
    assert.equal((await team.developer.call('deleteProject', { params: params(PROJECT) })).status, 403)
    assert.equal((await team.admin.call('deleteProject', { params: params(PROJECT) })).status, 204)
    assert.equal((await team.viewer.call('getProject', { params: params(PROJECT) })).body.code, 'project_not_found')
    const orphan = await team.developer.call('createEnvironment', { body: creation('orphan') })
    assert.equal(orphan.body.code, 'project_not_found')
  })

  it('a stranger finds no project and makes none', async () => {
    for (const answer of [
      await team.outsider.call('getProject', { params: params('site') }),
      await team.outsider.call('putProject', { params: params('site'), body: BODY }),
      await team.outsider.call('deleteProject', { params: params('site') }),
      await team.outsider.call('listProjects', { params: { org: ORG } }),
    ])
      assert.deepEqual([answer.status, answer.body.code], [404, 'organization_not_found'])
  })
})
