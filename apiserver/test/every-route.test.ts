import assert from 'node:assert/strict'
import type { ErrorCode } from '../../lib/errors/codes.ts'
import { ROLES, type Role, roleAtLeast } from '../../lib/model/credential.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { ApiClient, type OperationId } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, finished, makeTeam, ORG } from '../../testkit/api-team.ts'
import { type Aim, aimAt } from '../../testkit/route-aim.ts'
import { policyRowOf } from '../auth/policy.ts'
import type { Problem } from '../contract/problem.ts'
import { errorCodesOf, type Route } from '../contract/route.ts'
import { ROUTES } from '../contract/routes.ts'

/** A well-formed id of nothing, and the codes that say so, for each place that can name something. */
const UNKNOWN: Readonly<Record<string, readonly [id: string, ...codes: ErrorCode[]]>> = {
  org: ['nowhere', 'organization_not_found'],
  project: ['nowhere', 'project_not_found'],
  env: ['nowhere', 'environment_not_found'],
  subject: [`user:${newId('usr')}`, 'user_not_found', 'member_not_found'],
  operation: [newId('op'), 'operation_not_found'],
  token: [newId('tok'), 'token_not_found'],
  api_key: [newId('key'), 'api_key_not_found'],
  invitation: [newId('inv'), 'invitation_not_found'],
  session: [newId('ses'), 'session_not_found'],
  organization_id: ['nowhere', 'organization_not_found'],
  project_id: ['nowhere', 'project_not_found'],
}

describe('every route', () => {
  let api: TestApiServer
  let team: ApiTeam
  /** The owner, at another process on the same databases. */
  let replica: ApiClient
  before(async () => {
    api = await startTestApiServer({ replicas: 'processes' })
    team = await makeTeam(api)
    replica = new ApiClient(await api.startReplica(), team.owner.token)
  })
  after(() => api.stop())

  const callersByRole = (): readonly (readonly [Role | undefined, ApiCaller])[] => [
    ...ROLES.map(role => [role, team[role]] as const),
    [undefined, team.outsider],
  ]

  interface Event {
    readonly actor: string
    readonly metadata: Readonly<Record<string, unknown>>
  }
  /** Everything that was recorded, of organizations and of accounts. */
  const recorded = (): Promise<readonly Event[]> =>
    api.plane.database.rows<Event>(
      `select actor, metadata from (
         select actor, metadata, organization_id as head, id from audit_events
         union all select 'user:' || user_id, metadata, '', id from account_events) all_events order by head, id`,
    )
  const problemOf = (body: unknown): Omit<Problem, 'request_id' | 'instance'> => {
    const { request_id: _id, instance: _instance, ...rest } = body as Problem
    return rest
  }

  for (const route of Object.values<Route>(ROUTES)) {
    const id = route.operationId as OperationId
    const row = policyRowOf(route)
    // What only a session may call is in login.test.ts: these callers have tokens.
    if (row.role === 'public' || !row.credentials.includes('personal')) continue
    const isMutating = route.method !== 'get'
    const aim = (caller: ApiCaller): Promise<Aim> => aimAt(route, { api, team }, caller)
    let untouched: Promise<Aim> | undefined
    /** The owner's own: for what is refused and so changes nothing. */
    const aimToRefuse = (): Promise<Aim> => (untouched ??= aim(team.owner))
    /** What the policy table says of a role: undefined is yes. */
    const refusal = (role: Role | undefined): ErrorCode | undefined => {
      if (row.role === 'self' || row.role === 'public' || row.role === 'operator') return undefined
      if (role === undefined) return 'organization_not_found'
      return roleAtLeast(role, row.role) ? undefined : 'forbidden'
    }

    describe(id, () => {
      it('is closed to callers without a valid credential, before anything else is looked at', async () => {
        const target = await aimToRefuse()
        const before = await recorded()
        for (const [who, code] of [
          [api.nobody, 'unauthenticated'],
          [new ApiClient(api.url, 'svc_pat_junk'), 'invalid_token'],
        ] as const)
          for (const request of [
            target,
            { ...target, query: { junk: 'junk' }, ...(isMutating && { body: 'junk', key: 'j u n k' }) },
          ]) {
            const answer = await who.call(id, request)
            assert.deepEqual([answer.status, answer.body.code], [401, code])
          }
        assert.equal((await recorded()).length, before.length)
      })

      it('does for each role what the policy table says, and records each change exactly once', async () => {
        for (const [role, caller] of callersByRole()) {
          const who = role ?? 'a stranger'
          const target = await aim(caller)
          const before = await recorded()
          const answer = await caller.call(id, target)
          const expected = refusal(role)
          const status = expected === undefined ? route.success.status : expected === 'forbidden' ? 403 : 404
          assert.equal(answer.status, status, `${who}: ${answer.text}`)
          if (expected !== undefined) assert.equal(answer.body.code, expected, who)
          if (answer.status === 202)
            assert.equal(
              (await finished(team.owner, (answer.body as unknown as { id: string }).id)).state,
              'succeeded',
              who,
            )
          const events = (await recorded()).length - before.length
          // Who reads how to connect is recorded as if it were a change.
          const isRecorded = expected === undefined && (isMutating || route.rate === 'connection')
          assert.equal(events, isRecorded ? 1 : 0, `${who} left ${events} events`)
          if (isRecorded) {
            const news = (await recorded()).filter(
              event => event.metadata['request_id'] === answer.headers.get('x-request-id'),
            )
            assert.deepEqual(
              news.map(({ actor }) => actor),
              [`user:${caller.userId}`],
              who,
            )
          }
        }
      })

      if (isMutating)
        it('is done once however often it is asked for under one key, of two replicas, and answers the same bytes', async () => {
          const target = { ...(await aim(team.owner)), key: `once-${id}` }
          const before = await recorded()
          const callers = [team.owner, replica, team.owner, replica]
          const answers = await Promise.all(callers.map(caller => caller.call(id, target)))
          answers.push(await replica.call(id, target))
          const [first] = answers
          assert.ok(first)
          assert.equal(first.status, route.success.status, first.text)
          assert.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
          assert.equal(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length, 4)
          assert.equal((await recorded()).length - before.length, 1)
          if (first.status === 202) await finished(team.owner, (first.body as unknown as { id: string }).id)
        })

      if (route.organization !== 'none')
        it('tells a stranger nothing: an organization of others looks like one that is not there', async () => {
          const target = await aimToRefuse()
          const nowhere = {
            ...target,
            params: { ...target.params, ...(target.params['org'] !== undefined && { org: 'nowhere' }) },
            query: route.organization === 'query' ? { ...target.query, organization_id: 'nowhere' } : target.query,
            body: route.organization === 'body' ? { ...target.body, organization_id: 'nowhere' } : target.body,
            headers: route.organization === 'header' ? { 'X-Service-Organization-ID': 'nowhere' } : target.headers,
          }
          const stranger = await api.makeCaller('stranger')
          const [there, notThere] = [await stranger.call(id, target), await stranger.call(id, nowhere)]
          // Who may make an organization and who may not is no secret: that is told before anything is looked for.
          const code = row.mayCreate === true ? 'forbidden' : 'organization_not_found'
          assert.equal(there.body.code, code)
          assert.deepEqual(problemOf(there.body), problemOf(notThere.body))
        })

      const places = [
        ...Object.keys(route.params?.shape ?? {}).map(name => ['params', name] as const),
        ...(['organization_id', 'project_id'] as const).flatMap(name => [
          ...(name in (route.query?.shape ?? {}) ? ([['query', name]] as const) : []),
          ...(Object.hasOwn(route.examples.request ?? {}, name) ? ([['body', name]] as const) : []),
        ]),
      ]
      for (const [place, name] of places) {
        const [nothing = '', ...codes] = UNKNOWN[name] ?? []
        const code = codes.find(each => errorCodesOf(route).includes(each))
        const creates = route.method === 'put' && route.path.endsWith(`{${name}}`)
        if (creates && (code === undefined || row.mayCreate === true)) continue
        it(`answers 404 ${code} when its ${place} name an unknown ${name}`, async () => {
          assert.ok(code, `${id} documents no code for an unknown ${name}`)
          const target = await aimToRefuse()
          const before = await recorded()
          const answer = await team.owner.call(id, { ...target, [place]: { ...target[place], [name]: nothing } })
          assert.deepEqual([answer.status, answer.body.code], [404, code], answer.text)
          assert.equal((await recorded()).length, before.length)
        })
      }
    })
  }

  it('belongs to this organization alone: nothing was written elsewhere', async () => {
    const organizations = await api.plane.database.rows<{ organization_id: string }>(
      'select distinct organization_id from audit_events order by 1',
    )
    assert.deepEqual(
      organizations.map(each => each.organization_id),
      [ORG, 'other'],
    )
  })
})
