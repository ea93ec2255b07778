import assert from 'node:assert/strict'
import { ROLES } from '../../lib/model/credential.ts'
import type { Level } from '../../lib/model/scope.ts'
import { ApiClient, type OperationId } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, finished, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import {
  BY_SSO,
  CELLS,
  FOREIGN,
  isElsewhere,
  OPEN,
  SESSIONS,
  saidToSession,
  USELESS,
  type Useless,
} from '../../testkit/authorization-cells.ts'
import { COLUMNS, type Column, doesReach, MATRIX, SCOPES, type Verdict } from '../../testkit/authorization-matrix.ts'
import { FULL } from '../../testkit/full.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { type Aim, aimAt } from '../../testkit/route-aim.ts'
import { fromAnywhere, signInAs } from '../../testkit/sign-in.ts'
import {
  configureSso,
  SSO_CLIENT,
  SSO_ENVIRONMENT,
  SsoBrowser,
  signInBySso,
  ssoConfiguration,
} from '../../testkit/sso.ts'
import { policyRowOf } from '../auth/policy.ts'
import { ROUTES } from '../contract/routes.ts'

/** A credential, and the id of its row. */
interface Held {
  readonly client: ApiClient
  readonly id: string
  /** Whoever has it, where it is a person's own. */
  readonly caller?: ApiCaller
  readonly isAgent?: true
  /** Of single sign-on: the id of another session of theirs. */
  readonly another?: () => Promise<string>
}

describe('who may call what, through HTTP', () => {
  let api: TestApiServer
  let team: ApiTeam
  let provider: TestIdentityProvider
  const columns = new Map<Column, Held>()
  const useless = new Map<Useless, Held>()
  const sessions = new Map<(typeof SESSIONS)[number], Held>()
  let asked = 0

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
  const sessionOf = async (caller: ApiCaller): Promise<Held> => {
    const begun = await signInAs(api, caller)
    return { client: begun.client, id: begun.session.session_id }
  }
  /** A session of an owner whom an organization's provider vouches for. */
  const bySso = async (column: (typeof BY_SSO)[number]): Promise<Held> => {
    const [maker, org] = column === 'sso' ? [team.owner, ORG] : [team.outsider, 'other']
    await configureSso(maker, org, provider)
    const member = { params: { org, subject: 'sso:chief' }, body: { role: 'owner' } }
    assert.equal((await maker.call('putMember', member)).status, 200)
    const browser = new SsoBrowser('chief')
    const { client, caller, session } = await signInBySso(api, org, browser)
    const another = async (): Promise<string> => (await signInBySso(api, org, browser)).session.session_id
    return { client, id: session.session_id, caller, another }
  }
  const renewSso = async (): Promise<void> => {
    for (const column of BY_SSO) columns.set(column, await bySso(column))
  }
  const heldBy = (caller: ApiCaller): Held => ({ client: caller, id: caller.tokenId, caller })
  const ended = async (held: Held, sql: string): Promise<Held> => {
    await api.plane.database.rows(sql, [held.id])
    return held
  }

  before(async () => {
    // So that many sign in, each from an address of their own.
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    api = await startTestApiServer({ environment: SSO_ENVIRONMENT })
    team = await makeTeam(api)
    for (const role of ROLES) columns.set(role, heldBy(team[role]))
    const stranger = await api.makeCaller('stranger')
    columns.set('stranger', heldBy(stranger))
    for (const level of ['read', 'deploy', 'admin'] as const) {
      columns.set(`key:${level}`, await apiKey(team.owner, ORG, level))
      columns.set(`agent:${level}`, await agent(team.owner, [level]))
    }
    columns.set('session', await sessionOf(team.owner))
    await renewSso()
    for (const who of SESSIONS) sessions.set(who, await sessionOf(who === 'stranger' ? stranger : team[who]))
    const expire = `update tokens set expires_at = now() - interval '1 s' where id = $1`
    const revoke = 'update tokens set revoked_at = now() where id = $1'
    const disable = 'update users set disabled_at = now() where user_id = (select user_id from FROM where id = $1)'
    useless.set('nobody', { client: api.nobody, id: '' })
    useless.set('an expired token', await ended(heldBy(await api.makeCaller('past')), expire))
    useless.set('a revoked token', await ended(heldBy(await api.makeCaller('past')), revoke))
    useless.set('an agent’s expired token', await ended(await agent(team.owner, ['admin']), expire))
    useless.set('an agent’s revoked token', await ended(await agent(team.owner, ['admin']), revoke))
    useless.set(
      'a revoked key',
      await ended(await apiKey(team.owner, ORG, 'admin'), 'update api_keys set revoked_at = now() where id = $1'),
    )
    const disabled = await api.makeCaller('disabled')
    useless.set('a session of somebody disabled', await sessionOf(disabled))
    useless.set('a token of somebody disabled', await ended(heldBy(disabled), disable.replace('FROM', 'tokens')))
    const out = await sessionOf(stranger)
    assert.equal((await out.client.call('signOut')).status, 204)
    useless.set('a session that was signed out', out)
    for (const [what, column] of [
      ['a session that was idle for too long', 'last_used_at'],
      ['a session that lived for too long', 'created_at'],
    ] as const)
      useless.set(
        what,
        await ended(
          await sessionOf(await api.makeCaller('past')),
          `update sessions set ${column} = now() - interval '1 day' where id = $1`,
        ),
      )
  })
  after(async () => {
    await api.stop()
    await provider.stop()
  })

  /** A call as its author says it in the matrix, at a target of its own where it could succeed. */
  const call = async (operationId: (typeof MATRIX)[number]['operationId'], held: Held, aim: Aim): Promise<Verdict> => {
    asked++
    const answer = await held.client.call(operationId, aim)
    if (answer.status >= 400) return answer.body.code as Verdict
    if (answer.status === 202) await finished(team.owner, (answer.body as unknown as { id: string }).id)
    return 'yes'
  }

  for (const line of MATRIX) {
    const { operationId, verdicts, about } = line
    const route = ROUTES[operationId]
    const isMutating = route.method !== 'get'
    /** Whether the sessions of single sign-on may be over after it. */
    const isOver = operationId === 'signOut' || operationId === 'deleteSso'
    const takesAgents = verdicts['agent:admin'] !== 'credential_not_allowed'
    const aimFor = async (held: Held): Promise<Aim> => {
      const sso = ssoConfiguration(provider)
      const aim = await aimAt(route, { api, team, sso }, held.caller ?? team.owner)
      if (operationId === 'revokeSession' && held.another !== undefined)
        return { ...aim, params: { session: await held.another() } }
      return operationId === 'revokeToken' && held.isAgent === true ? { ...aim, params: { token: held.id } } : aim
    }
    let untouched: Promise<Aim> | undefined
    const aimToRefuse = (): Promise<Aim> => (untouched ??= aimFor(heldBy(team.owner)))
    /** Every yes of a change takes a target of its own: all of them in `make verify`, one a column group in `make test`. */
    const isTried = (verdict: Verdict, column: string): boolean =>
      verdict !== 'yes' || !isMutating || FULL || ['key:admin', 'agent:admin', 'sso', 'sso:elsewhere'].includes(column)

    it(`${operationId}: people, keys and agents`, async () => {
      const seen: Record<string, Verdict> = {}
      const expected: Record<string, Verdict> = {}
      for (const column of COLUMNS) {
        const verdict = verdicts[column]
        if (isElsewhere(operationId, column)) continue
        if (!isTried(verdict, column)) continue
        // An agent's token that revokes itself is gone for the calls after it.
        const own = operationId === 'revokeToken' && column.startsWith('agent')
        const held = own ? await agent(team.owner, ['read']) : columns.get(column)
        assert.ok(held)
        expected[column] = verdict
        seen[column] = await call(operationId, held, verdict === 'yes' ? await aimFor(held) : await aimToRefuse())
        // Nor is a session that signed out, or whose provider went; and one whose token was replaced is for a minute only.
        if (about === 'self' && isMutating && column === 'session') columns.set('session', await sessionOf(team.owner))
        if (isOver && verdict === 'yes') await renewSso()
      }
      assert.deepEqual(seen, expected)
    })

    it(`${operationId}: sessions of people who are no owners`, async () => {
      for (const who of SESSIONS) {
        const verdict = saidToSession(line, who)
        const held = sessions.get(who)
        assert.ok(held)
        if (verdict === undefined || isElsewhere(operationId, who) || !isTried(verdict, who)) continue
        assert.equal(
          await call(operationId, held, await (verdict === 'yes' ? aimFor(held) : aimToRefuse())),
          verdict,
          who,
        )
        if (isOver && verdict === 'yes') await renewSso()
      }
    })

    it(`${operationId}: credentials that are good no more`, async () => {
      for (const [what, held] of useless)
        assert.equal(await call(operationId, held, await aimToRefuse()), USELESS[what], what)
    })

    if (about === 'self' || !takesAgents) continue
    it(`${operationId}: what scopes name`, async () => {
      for (const text of SCOPES) {
        const isYes = doesReach(line, text)
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
      assert.equal(strangers.length, FOREIGN)
      for (const stranger of strangers)
        assert.equal(await call(operationId, stranger, aim), 'organization_not_found', stranger.id)
    })
  }

  for (const route of OPEN)
    it(`${route.operationId}: takes no credential, or a session`, async () => {
      const operationId = route.operationId as OperationId
      const { credentials } = policyRowOf(route)
      const request = { body: route.examples.request, headers: fromAnywhere() }
      asked++
      const { code } = (await api.nobody.call(operationId, request)).body
      assert.ok(!['unauthenticated', 'credential_not_allowed'].includes(code), code)
      if (credentials.length === 0) {
        // Whatever is shown is not looked at: what is good for nothing harms nobody, and what is good gives nothing.
        for (const [who, { client }] of [...columns, ...useless]) {
          if (who === 'nobody' || (!FULL && who !== 'owner' && who !== 'a revoked token')) continue
          asked++
          const answer = await client.call(operationId, { body: route.examples.request, headers: fromAnywhere() })
          assert.equal(answer.body.code, code, who)
        }
        return
      }
      for (const [column, held] of columns) {
        asked++
        const answer = await held.client.call(operationId, request)
        assert.equal(answer.body.code === 'credential_not_allowed', !/^(session|sso)/.test(column), column)
      }
      for (const [what, held] of useless) {
        asked++
        if (what !== 'nobody')
          assert.equal((await held.client.call(operationId, request)).body.code, 'invalid_token', what)
      }
    })

  it(`asks ${CELLS} cells in all: every route, and every kind of caller`, () => {
    assert.ok(FULL ? asked === CELLS : asked > CELLS / 2 && asked < CELLS, `${asked} of ${CELLS} were asked`)
  })

  /** The environment that a call is about without naming it. */
  const environmentOf = async (aim: Aim): Promise<string | undefined> => {
    const id = aim.params['operation']
    if (id === undefined) return undefined
    const { body } = await team.owner.call('getOperation', { params: { operation: id }, headers: aim.headers })
    return body.environment.environment_id
  }
})
