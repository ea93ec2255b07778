/** What holds for every route, and is asked of each: a new one does not compile until it stands here. */
import assert from 'node:assert/strict'
import { ApiClient, type ApiRequest, type OperationId } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, created, creation, finished, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import { ROUTES, type Routes } from '../contract/routes.ts'

type MutationId = { [Id in OperationId]: Routes[Id]['method'] extends 'get' ? never : Id }[OperationId]

/** One call that is carried out, and the one event that it leaves. */
interface Deed {
  readonly request: ApiRequest
  readonly event: string
}

const PROJECT_BODY = { region: 'local', postgres_major: 17 }
const UNKNOWN_ID = 'op_06dm3qz5hx7n0c8k2v4r9w1tbe'

describe('every route', () => {
  let api: TestApiServer
  let team: ApiTeam
  let replica: ApiClient
  let guest = 'user:usr_guest'
  before(async () => {
    api = await startTestApiServer()
    team = await makeTeam(api)
    replica = new ApiClient(await api.startReplica(), team.owner.token)
    guest = `user:${(await api.makeCaller('guest')).userId}`
    await created(team.owner, 'walked', { kind: 'preview', ttl_hours: 5 })
  })
  after(() => api.stop())

  const walked = { params: at('walked') }
  const inOrg = (more: Readonly<Record<string, string>> = {}): ApiRequest => ({ params: { org: ORG, ...more } })
  const event = (action: string, resource: string): string => `${action} ${resource}`

  /** In an order in which each finds what it needs. */
  const DEEDS: Readonly<Record<MutationId, () => Deed | Promise<Deed>>> = {
    putOrganization: () => ({
      request: { ...inOrg(), body: { name: 'Renamed' } },
      event: event('put_organization', ORG),
    }),
    putMember: () => ({
      request: { ...inOrg({ subject: guest }), body: { role: 'viewer' } },
      event: event('put_member', guest),
    }),
    removeMember: () => ({ request: inOrg({ subject: guest }), event: event('remove_member', guest) }),
    putProject: () => ({
      request: { ...inOrg({ project: 'brief' }), body: PROJECT_BODY },
      event: event('put_project', 'brief'),
    }),
    deleteProject: () => ({ request: inOrg({ project: 'brief' }), event: event('delete_project', 'brief') }),
    createEnvironment: () => ({
      request: { body: creation('made') },
      event: event('create_environment', `${PROJECT}/made`),
    }),
    updateEnvironment: () => ({
      request: { ...walked, body: { deletion_policy: 'retain' } },
      event: event('update_environment', `${PROJECT}/walked`),
    }),
    renewEnvironment: () => ({
      request: { ...walked, body: { ttl_hours: 9 } },
      event: event('renew_environment', `${PROJECT}/walked`),
    }),
    suspendEnvironment: () => ({ request: walked, event: event('suspend_environment', `${PROJECT}/walked`) }),
    resumeEnvironment: () => ({ request: walked, event: event('resume_environment', `${PROJECT}/walked`) }),
    rotateCredentials: () => ({ request: walked, event: event('rotate_credentials', `${PROJECT}/walked`) }),
    deleteEnvironment: () => ({ request: walked, event: event('delete_environment', `${PROJECT}/walked`) }),
    createToken: () => ({ request: { body: { name: 'walker' } }, event: 'create_token' }),
    revokeToken: async () => {
      const { body } = await team.owner.call('createToken', { body: { name: 'short' } })
      return { request: { params: { token: body.id } }, event: 'revoke_token' }
    },
  }

  /** Every event there is, of the organization and of the callers' accounts. */
  const events = async (): Promise<string[]> => {
    const rows = await api.plane.database.rows<{ event: string }>(
      `select action || ' ' || resource_id as event from audit_events where organization_id = $1
       union all select type from account_events where type <> 'create_user'`,
      [ORG],
    )
    return rows.map(row => row.event)
  }
  const without = (all: readonly string[], some: readonly string[]): string[] => {
    const left = [...all]
    for (const each of some) left.splice(left.indexOf(each), 1)
    return left
  }

  for (const id of Object.keys(DEEDS) as MutationId[])
    it(`${id}: asked for many times at once under one key, of two replicas, it is done once, with one event and one answer`, async () => {
      const { request, event: left } = await DEEDS[id]()
      const before = await events()
      const key = `once-${id}`
      const answers = await Promise.all(
        [team.owner, replica, team.owner, replica].map(caller => caller.call(id, { ...request, key })),
      )
      const later = await replica.call(id, { ...request, key })
      const all = [...answers, later]
      assert.deepEqual(
        [...new Set(all.map(({ status, text }) => `${status} ${text}`))],
        [`${ROUTES[id].success.status} ${later.text}`],
      )
      assert.equal(all.filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length, 4)
      assert.deepEqual(without(await events(), before), [left])
      const { id: operation, kind } = (later.text === '' ? {} : later.body) as { id?: string; kind?: string }
      if (kind !== undefined && operation?.startsWith('op_') === true)
        assert.equal((await finished(team.owner, operation)).state, 'succeeded')
    })

  it('stays as it is when it is only read', async () => {
    const before = await events()
    for (const [id, route] of Object.entries(ROUTES) as [OperationId, (typeof ROUTES)[OperationId]][])
      if (route.method === 'get' && id !== 'getConnection')
        await team.owner.call(id, {
          params: { ...at('made'), operation: UNKNOWN_ID },
          ...(id === 'listEnvironments' ? { query: { organization_id: ORG } } : {}),
          headers: { 'X-Service-Organization-ID': ORG },
        })
    assert.deepEqual(await events(), before)
  })

  /** A request in which one name, and only that, is unknown; and what is then said not to be found. */
  const lost = (id: OperationId): readonly (readonly [request: ApiRequest, code: string])[] => {
    const route: { readonly path: string; readonly method: string; readonly organization: string } = ROUTES[id]
    const params = { ...at('made'), subject: guest, operation: UNKNOWN_ID, token: 'tok_06dm3qz5hx7n0c8k2v4r9w1tbe' }
    const bodies: Partial<Record<OperationId, object>> = {
      putOrganization: { name: 'X' },
      putMember: { role: 'viewer' },
      putProject: PROJECT_BODY,
      createEnvironment: creation('unborn'),
      updateEnvironment: { deletion_policy: 'retain' },
      renewEnvironment: { ttl_hours: 1 },
      createToken: { name: 'x' },
    }
    const body = bodies[id]
    const base = (org: string, project: string, more: Readonly<Record<string, string>>): ApiRequest => ({
      params: { ...params, org, project, ...more },
      headers: { 'X-Service-Organization-ID': org },
      ...(id === 'listEnvironments' ? { query: { organization_id: org, project_id: project } } : {}),
      ...(body === undefined
        ? {}
        : { body: id === 'createEnvironment' ? { ...body, organization_id: org, project_id: project } : body }),
    })
    const hasProject = route.path.includes('{project}') || id === 'createEnvironment' || id === 'listEnvironments'
    return [
      ...(route.organization === 'none' || id === 'putOrganization'
        ? []
        : [[base('nowhere', PROJECT, {}), 'organization_not_found'] as const]),
      ...(hasProject && id !== 'putProject' ? [[base(ORG, 'nowhere', {}), 'project_not_found'] as const] : []),
      ...(route.path.includes('{env}')
        ? [[base(ORG, PROJECT, { env: 'nowhere' }), 'environment_not_found'] as const]
        : []),
      ...(route.path.includes('{operation}') ? [[base(ORG, PROJECT, {}), 'operation_not_found'] as const] : []),
      ...(route.path.includes('{token}') ? [[base(ORG, PROJECT, {}), 'token_not_found'] as const] : []),
      ...(id === 'putMember' ? [[base(ORG, PROJECT, { subject: 'user:usr_nobody' }), 'user_not_found'] as const] : []),
      ...(id === 'removeMember' ? [[base(ORG, PROJECT, {}), 'member_not_found'] as const] : []),
    ]
  }
  // Before the names of this run are known: only whether there is any.
  for (const id of (Object.keys(ROUTES) as OperationId[]).filter(each => lost(each).length > 0))
    it(`${id}: a name that is unknown is never taken for another one`, async () => {
      const before = await events()
      for (const [request, code] of lost(id)) {
        const answer = await team.owner.call(id, request)
        assert.deepEqual([answer.status, (answer.body as { code: string }).code], [404, code], JSON.stringify(request))
      }
      assert.deepEqual(await events(), before)
    })

  it('asks for a credential, health alone does not, and says nothing of an organization to those who are no member', async () => {
    for (const [id, route] of Object.entries(ROUTES) as [OperationId, (typeof ROUTES)[OperationId]][]) {
      if (route.policy === 'public') continue
      const [request] = lost(id).at(-1) ?? [{}]
      const nobody = await api.nobody.call(id, request)
      assert.deepEqual([id, nobody.status, (nobody.body as { code: string }).code], [id, 401, 'unauthenticated'])
      if (route.organization === 'none' || id === 'putOrganization') continue
      const stranger = await team.outsider.call(id, request)
      assert.deepEqual(
        [id, stranger.status, (stranger.body as { code: string }).code],
        [id, 404, 'organization_not_found'],
      )
    }
  })
})
