import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { ApiClient, type OperationId } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, finished, makeTeam, ORG } from '../../testkit/api-team.ts'
import { OIDC_CELLS, OPEN } from '../../testkit/authorization-cells.ts'
import { MATRIX, OIDC_COLUMNS, type OidcColumn, type Verdict } from '../../testkit/authorization-matrix.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { type Aim, aimAt } from '../../testkit/route-aim.ts'
import { fromAnywhere } from '../../testkit/sign-in.ts'
import type { Route } from '../contract/route.ts'
import { ROUTES } from '../contract/routes.ts'

describe('who may call what with an access token of an identity provider, through HTTP', () => {
  let api: TestApiServer
  let team: ApiTeam
  let provider: TestIdentityProvider
  const callers = new Map<OidcColumn, ApiClient>()
  let asked = 0
  before(async () => {
    provider = await startIdentityProvider()
    api = await startTestApiServer({
      environment: {
        SERVICE_AUTH_MODE: 'oidc',
        SERVICE_OIDC_ISSUER_URL: provider.issuer,
        SERVICE_OIDC_CLIENT_ID: provider.clientId,
        SERVICE_OIDC_CLIENT_SECRET: provider.clientSecret,
        SERVICE_CONSOLE_URL: 'https://console.example.com',
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
      },
    })
    // Tokens of ours make what is called, and work here as everywhere.
    team = await makeTeam(api)
    for (const column of OIDC_COLUMNS) {
      const subject = column.replace(':', '-')
      const [maker, org, role] =
        column === 'oidc:stranger' ? [team.outsider, 'other', 'owner'] : [team.owner, ORG, column.slice('oidc:'.length)]
      const member = await maker.call('putMember', { params: { org, subject }, body: { role } })
      assert.equal(member.status, 200, member.text)
      callers.set(column, new ApiClient(api.url, await provider.mint({ subject })))
    }
  })
  after(async () => {
    await api.stop()
    await provider.stop()
  })

  /** An invitation from when there was a built-in login: the only ones that are here. */
  const invited = async (): Promise<string> => {
    const id = newId('inv')
    await api.plane.database.rows(
      `insert into invitations (id, organization_id, email, role, invited_by, token_digest, by_mail, expires_at)
       values ($1, $2, $1 || '@example.com', 'viewer', $3, $4, false, now() + interval '1 day')`,
      [id, ORG, team.owner.userId, randomBytes(32)],
    )
    return id
  }
  const nothingMore = { query: {}, body: undefined, headers: {} }
  const aimFor = async (route: Route, caller: ApiClient): Promise<Aim> => {
    if (route.operationId === 'revokeInvitation')
      return { ...nothingMore, params: { org: ORG, invitation: await invited() } }
    // Nobody signs in here.
    if (route.operationId === 'revokeSession') return { ...nothingMore, params: { session: newId('ses') } }
    if (route.builtinLogin === true)
      return { ...nothingMore, params: { org: ORG }, body: route.examples.request as Aim['body'] }
    return aimAt(route, { api, team }, caller)
  }
  const call = async (operationId: OperationId, caller: ApiClient, aim: Aim): Promise<Verdict> => {
    asked++
    const answer = await caller.call(operationId, aim)
    if (answer.status >= 400) return answer.body.code as Verdict
    if (answer.status === 202) await finished(team.owner, (answer.body as unknown as { id: string }).id)
    return 'yes'
  }

  for (const { operationId, byOidc } of MATRIX)
    it(`${operationId}: access tokens of each role, and of another organization`, async () => {
      const route: Route = ROUTES[operationId]
      const seen: Record<string, Verdict> = {}
      let untouched: Promise<Aim> | undefined
      for (const [column, caller] of callers) {
        const isOwnTarget = byOidc[column] === 'yes' && route.method !== 'get'
        // What is read may be read by all, but for what is the caller's own.
        const isShared = !isOwnTarget && route.params?.shape['token'] === undefined
        const aim = isShared ? await (untouched ??= aimFor(route, team.owner)) : await aimFor(route, caller)
        seen[column] = await call(operationId, caller, aim)
      }
      assert.deepEqual(seen, byOidc)
    })

  for (const route of OPEN)
    it(`${route.operationId}: needs no credential, and an access token changes nothing`, async () => {
      const operationId = route.operationId as OperationId
      const ask = async (caller: ApiClient): Promise<readonly unknown[]> => {
        const { status, body } = await caller.call(operationId, {
          body: route.examples.request,
          headers: fromAnywhere(),
        })
        return [status, body.code]
      }
      const nobody = await ask(api.nobody)
      if (route.builtinLogin === true) assert.deepEqual(nobody, [409, 'builtin_login_disabled'])
      for (const [column, caller] of callers) {
        asked++
        assert.deepEqual(await ask(caller), nobody, column)
      }
    })

  it(`asks ${OIDC_CELLS} cells in all, and the provider once in a while`, () => {
    assert.equal(asked, OIDC_CELLS)
    // Each of five tokens is known for half a minute.
    assert.ok(provider.asked() >= callers.size && provider.asked() < asked / 10, String(provider.asked()))
  })
})
