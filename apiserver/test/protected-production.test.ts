/**
 * Production of a project with `protect_production`: who may touch it, asked of every call that could. A column beside the matrix of
 * authorization.test.ts, whose environments are protected by nothing.
 */
import assert from 'node:assert/strict'
import type { Level } from '../../lib/model/scope.ts'
import { ApiClient, type OperationId } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, creation, finished, makeTeam, ORG } from '../../testkit/api-team.ts'
import { signInAs } from '../../testkit/sign-in.ts'
import { POLICY, policyRowOf } from '../auth/policy.ts'
import { ROUTES } from '../contract/routes.ts'

const VAULT = 'vault'
const LIVE = { ...at('live'), project: VAULT }

/** What may change production, in an order in which each can succeed, the last one ending it. */
const CALLS = [
  'createEnvironment',
  'updateEnvironment',
  'getConnection',
  'rotateCredentials',
  'renewEnvironment',
  'suspendEnvironment',
  'resumeEnvironment',
  'deleteEnvironment',
] as const satisfies readonly OperationId[]

const requestOf = (operationId: (typeof CALLS)[number]) =>
  operationId === 'createEnvironment'
    ? { body: { ...creation('another', { kind: 'production' }), project_id: VAULT } }
    : {
        params: LIVE,
        ...(operationId === 'updateEnvironment' && { body: { deletion_protection: true } }),
        ...(operationId === 'renewEnvironment' && { body: { ttl_hours: 1 } }),
      }

const REFUSALS = ['forbidden', 'insufficient_scope', 'credential_not_allowed', 'unauthenticated', 'invalid_token']

describe('production of a protected project', () => {
  let api: TestApiServer
  let team: ApiTeam
  const callers = new Map<string, ApiClient>()

  const agentOf = async (maker: ApiCaller, level: Level): Promise<ApiClient> => {
    const { body } = await maker.call('createToken', { body: { name: 'agent', scopes: [level] } })
    return new ApiClient(api.url, body.token)
  }
  const keyOf = async (level: Level): Promise<ApiClient> => {
    const { body } = await team.owner.call('createApiKey', {
      params: { org: ORG },
      body: { name: 'key', scopes: [level] },
    })
    return new ApiClient(api.url, body.secret)
  }

  before(async () => {
    api = await startTestApiServer()
    team = await makeTeam(api)
    const project = { region: 'local', postgres_major: 17, protect_production: true }
    assert.equal(
      (await team.admin.call('putProject', { params: { org: ORG, project: VAULT }, body: project })).status,
      200,
    )
    const body = { ...creation('live', { kind: 'production' }), project_id: VAULT }
    const made = await team.admin.call('createEnvironment', { body })
    assert.equal((await finished(team.admin, made.body.id)).state, 'succeeded')
    for (const role of ['viewer', 'developer', 'admin', 'owner'] as const) {
      callers.set(role, team[role])
      callers.set(`a session of the ${role}`, (await signInAs(api, team[role])).client)
      callers.set(`an agent with the ${role}’s rights`, await agentOf(team[role], 'admin'))
    }
    for (const level of ['read', 'deploy', 'admin'] as const) {
      callers.set(`an owner’s agent to ${level}`, await agentOf(team.owner, level))
      callers.set(`a key to ${level}`, await keyOf(level))
    }
  })
  after(() => api.stop())

  /** By the table: a role of less is refused as such, a level of less as such. */
  const REFUSED: Readonly<Record<string, string>> = {
    viewer: 'forbidden',
    'a session of the viewer': 'forbidden',
    'an agent with the viewer’s rights': 'forbidden',
    developer: 'forbidden',
    'a session of the developer': 'forbidden',
    'an agent with the developer’s rights': 'forbidden',
    'an owner’s agent to read': 'insufficient_scope',
    'an owner’s agent to deploy': 'insufficient_scope',
    'a key to read': 'insufficient_scope',
    'a key to deploy': 'insufficient_scope',
  }

  it('is guarded in every call that the policy says it is', () => {
    const guarded = Object.values(ROUTES)
      .filter(route => policyRowOf(route).production === 'when-protected')
      .map(({ operationId }) => operationId)
    assert.deepEqual(guarded.toSorted(), [...CALLS].toSorted())
    assert.ok(Object.values(POLICY).some(row => 'production' in row))
  })

  for (const operationId of CALLS)
    it(`${operationId}: nobody below an admin`, async () => {
      const seen: Record<string, string> = {}
      for (const who of Object.keys(REFUSED)) {
        const { body } = await callers.get(who)!.call(operationId, requestOf(operationId))
        seen[who] = body.code
      }
      assert.deepEqual(seen, REFUSED)
    })

  it('is as it was after all of that', async () => {
    const { body } = await team.owner.call('getEnvironment', { params: LIVE })
    assert.deepEqual([body.phase, body.deletion_policy, body.deletion_protection], ['ready', 'retain', false])
    const another = await team.owner.call('getEnvironment', { params: { ...LIVE, env: 'another' } })
    assert.equal(another.body.code, 'environment_not_found')
  })

  for (const operationId of CALLS)
    it(`${operationId}: an admin, and an owner, in person, by an agent or a key`, async () => {
      const allowed = [...callers.keys()].filter(who => !(who in REFUSED))
      assert.equal(allowed.length, 8)
      for (const who of allowed) {
        const answer = await callers.get(who)!.call(operationId, requestOf(operationId))
        // Whatever stands in its way, it is not who asks.
        assert.ok(!REFUSALS.includes(answer.body.code), `${who}: ${answer.text}`)
        if (answer.status === 202) await finished(team.owner, (answer.body as unknown as { id: string }).id)
      }
    })
})
