import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiTeam, created, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import { sized } from '../../testkit/full.ts'
import { fuzz } from '../../testkit/fuzz/fuzz.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { type LoginWorld, startLoginWorld } from '../../testkit/login-world.ts'
import { fromAnywhere, givePassword, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { SSO_CLIENT, SSO_ENVIRONMENT } from '../../testkit/sso.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { ROUTES } from '../contract/routes.ts'

const CANARY = 'canary-0123456789-of-a-secret'
/** `make fuzz N=1000000 SEED=7`: by hand, as many as one likes. */
const N = Number(process.env['FUZZ_N'] ?? sized(1000, 100_000))
const SEED = process.env['FUZZ_SEED'] === 'random' ? Date.now() % 1_000_000 : Number(process.env['FUZZ_SEED'] ?? 1)
/** Enough for every operation that a request out of the document can do. */
const MANY = 100_000
/** How many fewer requests reach. */
const SOME = N < 10_000 ? 20 : 42
/** What may never be done: each needs what nobody guesses, or what another request may have ended before. */
const OUT_OF_REACH: Readonly<Record<string, readonly string[]>> = {
  'a password': ['beginTotp', 'removeTotp', 'renewRecoveryCodes', 'changePassword', 'signIn', 'issuePasswordReset'],
  'a code of a second factor': ['confirmTotp', 'signInMfa'],
  'what is sent by mail or given by hand': [
    ...['previewInvitation', 'acceptInvitation', 'previewMagicLink', 'verifyMagicLink'],
    ...['previewPasswordReset', 'completePasswordReset', 'setUp'],
  ],
  'what another party holds': ['finishSso', 'pollDeviceToken'],
  'a server of the environment': ['getConnection'],
  'what whoever comes first uses up': [
    ...['approveDevice', 'denyDevice', 'revokeInvitation', 'revokeSession', 'revokeToken'],
    ...['renewEnvironment', 'resumeEnvironment', 'deleteProject'],
  ],
}

describe(`requests out of the OpenAPI document, seed ${SEED}`, () => {
  let world: LoginWorld
  let provider: TestIdentityProvider
  let team: ApiTeam
  let creation: OperationRecord
  const leaks: string[] = []
  before(async () => {
    const watch = (line: string): boolean => line.includes(CANARY) || line.includes('Unforeseen')
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    world = await startLoginWorld({
      operator: true,
      keeps: line => watch(line) && leaks.push(line) > 0,
      environment: SSO_ENVIRONMENT,
    })
    team = await makeTeam(world.api)
    creation = await created(team.owner, 'main', { deletion_protection: true })
    await created(team.owner, 'preview', { kind: 'preview', ttl_hours: 100 })
  })
  after(async () => {
    await world.stop()
    await provider.stop()
  })

  it(`${N} of them get documented answers, never a 5xx, and nothing that was secret in them comes back or is logged`, async function () {
    this.timeout(3_600_000)
    const { api } = world
    const { owner, viewer, outsider } = team
    const params = { org: ORG }
    const key = await owner.call('createApiKey', { params, body: { name: 'fuzz', scopes: ['admin'] } })
    const agent = await owner.call('createToken', { body: { name: 'fuzz', scopes: ['deploy'], ttl: 'never' } })
    const given = await owner.call('createToken', { body: { name: 'to end', scopes: ['read'], ttl: 'never' } })
    const invited = await owner.call('createInvitation', {
      params,
      body: { email: 'guest@example.com', role: 'viewer' },
    })
    const device = await api.nobody.call('requestDeviceCode', { body: { client_name: 'fuzz' } })
    const newSession = async (): Promise<string> => {
      await givePassword(api, owner.userId)
      // What was tried with wrong passwords counts against whoever is signed in.
      for (const table of ['attempts', 'sign_in_failures', 'second_factors'])
        await api.plane.database.rows(`delete from ${table}`)
      const answer = await api.nobody.call('signIn', {
        body: { email: owner.email, password: TEST_PASSWORD },
        headers: fromAnywhere(),
      })
      assert.equal(answer.status, 200, answer.text)
      return answer.body.token
    }
    const things = {
      org: ORG,
      organization_id: ORG,
      'X-Service-Organization-ID': ORG,
      project: PROJECT,
      project_id: PROJECT,
      env: ['main', 'preview'],
      token: given.body.id,
      operation: creation.id,
      invitation: invited.body.invitation_id,
      user_code: device.body.user_code,
      subject: `user:${viewer.userId}`,
      email: outsider.email,
      // One that answers, for some of the organization's providers.
      issuer: provider.issuer,
      api_key: key.body.api_key_id,
    }
    const { findings, statuses, succeeded } = await fuzz(
      {
        url: api.url,
        seed: SEED,
        first: 0,
        count: N,
        world: {
          tokens: [owner.token, owner.token, owner.token, viewer.token, agent.body.token, key.body.secret],
          session: await newSession(),
          things,
          canary: CANARY,
        },
      },
      newSession,
    )
    assert.deepEqual(findings, [])
    assert.deepEqual(leaks, [])
    const answered = statuses.reduce((sum, [, count]) => sum + count, 0)
    assert.equal(answered, N)
    const refused = statuses.filter(([status]) => status >= 400).reduce((sum, [, count]) => sum + count, 0)
    assert.ok(refused > N / 2 && refused < N * 0.97, JSON.stringify(statuses))
    const missing = Object.keys(ROUTES).filter(each => !succeeded.includes(each))
    if (N < MANY) assert.ok(succeeded.length >= SOME, `never succeeded: ${missing.join()}`)
    else
      assert.deepEqual(
        missing.filter(each => !Object.values(OUT_OF_REACH).flat().includes(each)),
        [],
      )
    assert.equal((await new ApiClient(api.url).call('getHealth')).status, 200)
  })
})
