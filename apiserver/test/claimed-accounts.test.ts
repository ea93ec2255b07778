/** Accounts that somebody had before their address was proved: what is left of that once they go to whoever it belongs to. */
import assert from 'node:assert/strict'
import { hash } from '@node-rs/argon2'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { makeTeam, ORG } from '../../testkit/api-team.ts'
import { type EarlierHolder, EVERYTHING, holdEverything, NOTHING } from '../../testkit/earlier-holder.ts'
import { type LoginWorld, linkAndCode, startLoginWorld } from '../../testkit/login-world.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD, type TestSession } from '../../testkit/sign-in.ts'
import { prepareFirstAdministrator } from '../commands/login/first-administrator.ts'
import { knowsAddress } from '../store/login/known-addresses.ts'

const PASSWORD = 'seven wet stones at the pier'
const EMAIL = 'boss@example.com'
const HOME = '10.1.2.3'

const enter = async (api: TestApiServer, email: string, password: string, headers = fromAnywhere()) =>
  api.nobody.call('signIn', { body: { email, password }, headers })

const eventOf = async (api: TestApiServer, type: string): Promise<Readonly<Record<string, unknown>>> => {
  const row = await api.plane.database.row<{ metadata: Record<string, unknown> }>(
    'select metadata from account_events where type = $1 order by id desc limit 1',
    [type],
  )
  assert.ok(row !== undefined, `there is no ${type}`)
  return row.metadata
}

describe('an account that becomes the administrator’s', () => {
  let api: TestApiServer
  beforeEach(async () => {
    const environment = { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8', SERVICE_ADMIN_EMAIL: EMAIL }
    api = await startTestApiServer({ operator: false, environment })
  })
  afterEach(() => api.stop())

  /** Somebody takes the address by the link of an invitation, which without mail proves nothing, and holds what they can. */
  const claimed = async (): Promise<EarlierHolder & { readonly secret: string }> => {
    const { owner } = await makeTeam(api)
    const invited = await owner.call('createInvitation', {
      params: { org: ORG },
      body: { email: EMAIL, role: 'viewer' },
    })
    const token = invited.body.invite_url?.split('/').at(-1)
    const accepted = await api.nobody.call('acceptInvitation', { body: { token, password: TEST_PASSWORD } })
    assert.equal(accepted.status, 201, accepted.text)
    const answer = await enter(api, EMAIL, TEST_PASSWORD, { 'X-Forwarded-For': HOME })
    const session: TestSession = { ...answer.body, client: new ApiClient(api.url, answer.body.token) }
    const held = await holdEverything(api, session)
    return { ...held, secret: (await enrolTotp(session)).secret }
  }
  const setUp = async (): Promise<ApiClient> => {
    const made = await api.nobody.call('setUp', {
      body: { setup_token: api.server.setupToken, email: EMAIL, password: PASSWORD },
      headers: fromAnywhere(),
    })
    assert.equal(made.status, 201, made.text)
    return new ApiClient(api.url, made.body.token)
  }
  const boot = async (password: string): Promise<void> => {
    const passwordHash = await hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 })
    await prepareFirstAdministrator(api.plane.database, { email: EMAIL, passwordHash })
  }

  /** What only operators may, where sign-up is closed. */
  const asOperator = async (client: ApiClient): Promise<number> =>
    (await client.call('putOrganization', { params: { org: 'new' }, body: { name: 'New' } })).status

  it('by the setup token leaves whoever had it nothing: no token, no device, no second factor, no known address', async () => {
    const thief = await claimed()
    assert.equal(await asOperator(thief.personal), 403)
    assert.equal(await knowsAddress(api.plane.database, EMAIL, HOME), true)
    const boss = await setUp()
    assert.deepEqual(await thief.reach(), NOTHING)
    assert.equal(await asOperator(thief.personal), 401)
    assert.equal(await knowsAddress(api.plane.database, EMAIL, HOME), false)
    const again = await enter(api, EMAIL, PASSWORD)
    assert.deepEqual([again.status, again.body.user.is_operator], [200, true])
    assert.deepEqual((await boss.call('getMfa')).body, {
      totp: { enabled: false, enrolled_at: null },
      recovery_codes_remaining: 0,
    })
    // An organization gave it to the address.
    const { organizations } = (await boss.call('getSession')).body
    assert.deepEqual(
      organizations.map(({ organization_id, role }) => [organization_id, role]),
      [[ORG, 'viewer']],
    )
    const { sessions_ended, tokens_revoked, mfa_removed } = await eventOf(api, 'setup_completed')
    assert.deepEqual([sessions_ended, tokens_revoked, mfa_removed], [1, 2, true])
  })

  it('by the configuration does so too; what the administrator has since stays when the hash changes', async () => {
    const thief = await claimed()
    await boot(PASSWORD)
    assert.deepEqual(await thief.reach(), NOTHING)
    const { source, sessions_ended, tokens_revoked, mfa_removed } = await eventOf(api, 'setup_completed')
    assert.deepEqual([source, sessions_ended, tokens_revoked, mfa_removed], ['configuration', 1, 2, true])
    const { body, status } = await enter(api, EMAIL, PASSWORD)
    assert.equal(status, 200)
    const client = new ApiClient(api.url, body.token)
    const token = (await client.call('createToken', { body: { name: 'own' } })).body.token
    const begun = await client.call('beginTotp', { body: { password: PASSWORD }, headers: fromAnywhere() })
    const confirmed = await client.call('confirmTotp', { body: { code: codeOf(begun.body.secret) } })
    assert.equal(confirmed.status, 200, confirmed.text)
    await boot(TEST_PASSWORD)
    assert.equal(await asOperator(new ApiClient(api.url, token)), 200)
    assert.equal((await enter(api, EMAIL, TEST_PASSWORD)).body.code, 'mfa_required')
    assert.equal('tokens_revoked' in (await eventOf(api, 'password_reset')), false)
  })

  it('keeps what it has where the address was proved before: it is the same person’s', async () => {
    const holder = await claimed()
    await api.plane.database.rows('update users set email_verified_at = now() where email = $1', [EMAIL])
    await setUp()
    // A new password ends sessions, whoever sets it.
    assert.deepEqual(await holder.reach(), { ...EVERYTHING, session: 401 })
    assert.equal((await enter(api, EMAIL, PASSWORD)).body.code, 'mfa_required')
    assert.equal('tokens_revoked' in (await eventOf(api, 'setup_completed')), false)
  })
})

describe('an account whose address is proved by mail, or whose password an operator lets somebody set', () => {
  let world: LoginWorld
  let api: TestApiServer
  let operator: TestSession
  before(async () => {
    world = await startLoginWorld()
    api = world.api
    operator = await signInAs(api, await api.makeCaller('operator', { isOperator: true }))
  })
  after(() => world.stop())

  interface Claimed extends EarlierHolder {
    readonly caller: ApiCaller
    readonly session: TestSession
  }
  /** Somebody with a password, of whom nobody knows whether they read the account's mail. */
  const claimed = async (): Promise<Claimed> => {
    const caller = await api.makeCaller('claimed')
    const session = await signInAs(api, caller)
    return { caller, session, ...(await holdEverything(api, session)) }
  }
  const prove = async ({ email }: ApiCaller, way: 'link' | 'code') => {
    await api.nobody.call('requestMagicLink', { body: { email }, headers: fromAnywhere() })
    const { token, code } = linkAndCode(await world.nextLetter(email))
    const body = way === 'link' ? { token } : { email, code }
    return api.nobody.call('verifyMagicLink', { body, headers: fromAnywhere() })
  }
  const mailed = async ({ email }: ApiCaller): Promise<string> => {
    await api.nobody.call('requestPasswordReset', { body: { email }, headers: fromAnywhere() })
    return /svc_rst_\w+/.exec((await world.nextLetter(email)).text)![0]
  }
  const issued = async ({ email }: ApiCaller): Promise<string> => {
    const body = { email, admin_password: TEST_PASSWORD }
    const answer = await operator.client.call('issuePasswordReset', { body, headers: fromAnywhere() })
    return answer.body.reset_url.split('/').at(-1)!
  }
  const complete = async (token: string): Promise<void> => {
    const body = { token, new_password: PASSWORD }
    const answer = await api.nobody.call('completePasswordReset', { body, headers: fromAnywhere() })
    assert.equal(answer.status, 204, answer.text)
  }
  const isProved = async ({ userId }: ApiCaller): Promise<boolean> =>
    (await api.plane.database.row('select 1 from users where user_id = $1 and email_verified_at is not null', [
      userId,
    ])) !== undefined

  for (const way of ['link', 'code'] as const)
    it(`leaves whoever had it nothing once a ${way} proved it`, async () => {
      const thief = await claimed()
      await thief.session.client.call('beginTotp', { body: { password: TEST_PASSWORD }, headers: fromAnywhere() })
      assert.equal((await prove(thief.caller, way)).status, 200)
      assert.deepEqual(await thief.reach(), NOTHING)
      assert.equal((await enter(api, thief.caller.email, TEST_PASSWORD)).status, 401)
      const kept = await api.plane.database.rows('select 1 from second_factors where user_id = $1', [
        thief.caller.userId,
      ])
      assert.deepEqual(kept, [])
    })

  it('leaves whoever had it nothing once an emailed link set its password', async () => {
    const thief = await claimed()
    await complete(await mailed(thief.caller))
    assert.deepEqual(await thief.reach(), NOTHING)
    assert.deepEqual(
      [(await enter(api, thief.caller.email, PASSWORD)).status, await isProved(thief.caller)],
      [200, true],
    )
    const { password_removed, sessions_ended, tokens_revoked } = await eventOf(api, 'email_verified')
    assert.deepEqual([password_removed, sessions_ended, tokens_revoked], [true, 1, 3])
    // From now on it is its user's, whatever they do with another link.
    const token = (await signedIn(thief.caller)).call('createToken', { body: { name: 'own' } })
    const own = new ApiClient(api.url, (await token).body.token)
    await world.pass(61)
    await complete(await mailed(thief.caller))
    assert.equal((await own.call('listTokens')).status, 200)
  })
  const signedIn = async ({ email }: ApiCaller): Promise<ApiClient> =>
    new ApiClient(api.url, (await enter(api, email, PASSWORD)).body.token)

  it('leaves no token once an operator’s link set its password, which proves nothing', async () => {
    const thief = await claimed()
    await complete(await issued(thief.caller))
    assert.deepEqual([await thief.reach(), await isProved(thief.caller)], [NOTHING, false])
    const { issued_by, tokens_revoked } = await eventOf(api, 'password_reset')
    assert.deepEqual([issued_by, tokens_revoked], [operator.user.user_id, 3])
  })

  for (const [what, link] of [
    ['emailed', mailed],
    ['operator’s', issued],
  ] as const)
    it(`keeps the second factor whatever an ${what} link does, and the address stays unproved until it is given`, async () => {
      const holder = await claimed()
      const { secret } = await enrolTotp(holder.session)
      await complete(await link(holder.caller))
      assert.deepEqual([await holder.reach(), await isProved(holder.caller)], [NOTHING, false])
      assert.equal((await enter(api, holder.caller.email, PASSWORD)).body.code, 'mfa_required')
      const half = await prove(holder.caller, 'link')
      const { mfa_token } = half.body as unknown as { readonly mfa_token: string }
      const body = { mfa_token, totp_code: codeOf(secret) }
      assert.equal((await api.nobody.call('signInMfa', { body, headers: fromAnywhere() })).status, 200)
      assert.equal(await isProved(holder.caller), true)
    })

  it('keeps the tokens that whoever runs the service made for it, where nobody had claimed it', async () => {
    const caller = await api.makeCaller('named')
    assert.equal((await prove(caller, 'link')).status, 200)
    assert.equal((await caller.call('listTokens')).status, 200)
  })

  it('keeps its tokens when a link sets the password of one that was proved', async () => {
    const holder = await claimed()
    await api.plane.database.rows('update users set email_verified_at = now() where user_id = $1', [
      holder.caller.userId,
    ])
    await complete(await issued(holder.caller))
    assert.deepEqual(await holder.reach(), { ...EVERYTHING, session: 401 })
  })
})
