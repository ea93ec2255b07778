import assert from 'node:assert/strict'
import type { ErrorCode } from '../../lib/errors/codes.ts'
import { ROLES } from '../../lib/model/credential.ts'
import type { Level } from '../../lib/model/scope.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, finished, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import { type About, COLUMNS, type Column, MATRIX, REACHES, type Verdict } from '../../testkit/authorization-matrix.ts'
import { FULL } from '../../testkit/full.ts'
import { type Aim, aimAt } from '../../testkit/route-aim.ts'
import { signInAs } from '../../testkit/sign-in.ts'
import { ROUTES } from '../contract/routes.ts'

/** A credential, and the id of its row. */
interface Held {
  readonly client: ApiClient
  readonly id: string
  /** Whoever has it, where it is a person's own. */
  readonly caller?: ApiCaller
  readonly isAgent?: true
}

describe('who may call what, through HTTP', () => {
  let api: TestApiServer
  let team: ApiTeam
  const columns = new Map<Column, Held>()
  /** Credentials that are good for nothing here, and what each call says to them. */
  const useless = new Map<string, { readonly held: Held; readonly code: ErrorCode }>()

  const agent = async (
    maker: ApiCaller,
    scopes: readonly string[],
    more: { readonly organization_id?: string } = {},
  ): Promise<Held> => {
    const made = await maker.call('createToken', { body: { name: 'agent', scopes, ...more } })
    assert.equal(made.status, 201, made.text)
    return { client: new ApiClient(api.url, made.body.token), id: made.body.id, isAgent: true }
  }
  const apiKey = async (maker: ApiCaller, org: string, level: Level): Promise<Held> => {
    const made = await maker.call('createApiKey', { params: { org }, body: { name: 'key', scopes: [level] } })
    assert.equal(made.status, 201, made.text)
    return { client: new ApiClient(api.url, made.body.secret), id: made.body.api_key_id }
  }
  const session = async (): Promise<Held> => {
    const begun = await signInAs(api, team.owner)
    return { client: begun.client, id: begun.session.session_id }
  }
  const heldBy = (caller: ApiCaller): Held => ({ client: caller, id: caller.tokenId, caller })
  const ended = async (held: Held, sql: string): Promise<Held> => {
    await api.plane.database.rows(sql, [held.id])
    return held
  }

  before(async () => {
    // So that many sign in, each from an address of their own.
    api = await startTestApiServer({ environment: { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' } })
    team = await makeTeam(api)
    for (const role of ROLES) columns.set(role, heldBy(team[role]))
    columns.set('stranger', heldBy(await api.makeCaller('stranger')))
    for (const level of ['read', 'deploy', 'admin'] as const) {
      columns.set(`key:${level}`, await apiKey(team.owner, ORG, level))
      columns.set(`agent:${level}`, await agent(team.owner, [level]))
    }
    columns.set('session', await session())
    const expire = `update tokens set expires_at = now() - interval '1 s' where id = $1`
    const past = await api.makeCaller('past')
    const nobody = { client: api.nobody, id: '' }
    const revokedKey = await apiKey(team.owner, ORG, 'admin')
    const leaver = await agent(team.owner, ['admin'])
    useless.set('nobody', { held: nobody, code: 'unauthenticated' })
    useless.set('an expired token', { held: await ended(heldBy(past), expire), code: 'invalid_token' })
    useless.set('an agent’s expired token', {
      held: await ended(await agent(team.owner, ['admin']), expire),
      code: 'invalid_token',
    })
    useless.set('an agent’s revoked token', {
      held: await ended(leaver, 'update tokens set revoked_at = now() where id = $1'),
      code: 'invalid_token',
    })
    useless.set('a revoked key', {
      held: await ended(revokedKey, 'update api_keys set revoked_at = now() where id = $1'),
      code: 'invalid_token',
    })
  })
  after(() => api.stop())

  /** A call as its author says it in the matrix, at a target of its own where it could succeed. */
  const call = async (operationId: (typeof MATRIX)[number]['operationId'], held: Held, aim: Aim): Promise<Verdict> => {
    const answer = await held.client.call(operationId, aim)
    if (answer.status >= 400) return answer.body.code as Verdict
    if (answer.status === 202) await finished(team.owner, (answer.body as unknown as { id: string }).id)
    return 'yes'
  }

  for (const { operationId, verdicts, about } of MATRIX) {
    const route = ROUTES[operationId]
    const isMutating = route.method !== 'get'
    const takesAgents = verdicts['agent:admin'] !== 'credential_not_allowed'
    const aimFor = async (held: Held): Promise<Aim> => {
      const aim = await aimAt(route, { api, team }, held.caller ?? team.owner)
      return operationId === 'revokeToken' && held.isAgent === true ? { ...aim, params: { token: held.id } } : aim
    }
    let untouched: Promise<Aim> | undefined
    const aimToRefuse = (): Promise<Aim> => (untouched ??= aimFor(heldBy(team.owner)))
    /** Every yes of a change takes a target of its own: all of them in `make verify`, one a column group in `make test`. */
    const isTried = (verdict: Verdict, column: string): boolean =>
      verdict !== 'yes' || !isMutating || FULL || column === 'key:admin' || column === 'agent:admin'

    it(`${operationId}: people, keys and agents`, async () => {
      const seen: Record<string, Verdict> = {}
      const expected: Record<string, Verdict> = {}
      for (const column of COLUMNS) {
        const verdict = verdicts[column]
        // A stranger who may make an organization is told so; what they cannot do is in every-route.test.ts.
        if (operationId === 'putOrganization' && column === 'stranger') continue
        if (!isTried(verdict, column)) continue
        // An agent's token that revokes itself is gone for the calls after it.
        const own = operationId === 'revokeToken' && column.startsWith('agent')
        const held = own ? await agent(team.owner, ['read']) : columns.get(column)
        assert.ok(held)
        expected[column] = verdict
        seen[column] = await call(operationId, held, verdict === 'yes' ? await aimFor(held) : await aimToRefuse())
        // Nor is a session that signed out.
        if (operationId === 'signOut' && column === 'session') columns.set('session', await session())
      }
      assert.deepEqual(seen, expected)
    })

    it(`${operationId}: credentials that are good no more`, async () => {
      for (const [what, { held, code }] of useless)
        assert.equal(await call(operationId, held, await aimToRefuse()), code, what)
    })

    if (about === 'self' || !takesAgents) continue
    it(`${operationId}: what scopes name`, async () => {
      for (const [text, reached] of Object.entries<readonly About[]>(REACHES)) {
        const isYes = reached.includes(about)
        if (isYes && isMutating && !FULL && !text.startsWith('env')) continue
        const aim = isYes ? await aimFor(heldBy(team.owner)) : await aimToRefuse()
        const body = aim.body as { readonly environment_id?: string } | undefined
        const project = aim.params['project'] ?? PROJECT
        const env = aim.params['env'] ?? body?.environment_id ?? (await environmentOf(aim)) ?? 'none'
        const scope = text.replace('ORG', ORG).replace('PROJECT', project).replace('ENV', env)
        const bound = await agent(team.owner, [scope], { organization_id: ORG })
        assert.equal(await call(operationId, bound, aim), isYes ? 'yes' : 'insufficient_scope', scope)
      }
    })

    it(`${operationId}: agents of those who may not, and tokens and keys of other organizations`, async () => {
      const aim = await aimToRefuse()
      const ofViewer = verdicts.viewer === 'yes' ? undefined : await agent(team.viewer, ['admin'])
      if (ofViewer !== undefined) assert.equal(await call(operationId, ofViewer, aim), 'forbidden')
      const strangers = [
        await agent(team.outsider, ['admin']),
        await agent(team.outsider, ['admin'], { organization_id: 'other' }),
        await apiKey(team.outsider, 'other', 'admin'),
      ]
      for (const stranger of strangers)
        assert.equal(await call(operationId, stranger, aim), 'organization_not_found', stranger.id)
    })
  }

  /** The environment that a call is about without naming it. */
  const environmentOf = async (aim: Aim): Promise<string | undefined> => {
    const id = aim.params['operation']
    if (id === undefined) return undefined
    const { body } = await team.owner.call('getOperation', { params: { operation: id }, headers: aim.headers })
    return body.environment.environment_id
  }
})
