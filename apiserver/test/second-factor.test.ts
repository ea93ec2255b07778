import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { tokenDigest } from '../../lib/credentials/token.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { REPLICAS } from '../../testkit/full.ts'
import { beginTotp, codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { dropMfaTokens, tryMfaToken } from '../store/login/second-factors.ts'

describe('a second factor', () => {
  let api: TestApiServer
  let replica: ApiClient
  before(async () => {
    api = await startTestApiServer({
      operator: false,
      replicas: REPLICAS,
      environment: { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' },
    })
    replica = new ApiClient(await api.startReplica())
  })
  after(() => api.stop())

  let last = 0
  /** Each call comes from an address of its own, as a trusted proxy says. */
  const from = () => ({ headers: { 'X-Forwarded-For': `198.51.${(last = (last + 1) % 60_000) >> 8}.${last & 255}` } })
  const signIn = (caller: ApiCaller, more: object = {}, client: ApiClient = api.nobody) =>
    client.call('signIn', { body: { email: caller.email, password: TEST_PASSWORD, ...more }, ...from() })
  const secondStep = (token: string, proof: object, client: ApiClient = api.nobody) =>
    client.call('signInMfa', { body: { mfa_token: token, ...proof }, ...from() })
  const enrolled = async (name: string) => {
    const caller = await api.makeCaller(name)
    const session = await signInAs(api, caller)
    return { caller, session, ...(await enrolTotp(session)) }
  }
  const tokenOf = async (caller: ApiCaller): Promise<string> => {
    const { status, body } = await signIn(caller)
    const { code, mfa_token: token, methods } = body as unknown as Record<string, unknown>
    assert.deepEqual([status, code, methods], [401, 'mfa_required', ['totp', 'recovery_code']])
    assert.match(String(token), /^svc_mfa_[0-9A-Za-z]{43}$/)
    return String(token)
  }
  const wrong = (secret: string): string => {
    const right = [-1, 0, 1, 2].map(later => codeOf(secret, later))
    return ['000000', '111111', '222222', '333333', '444444'].find(code => !right.includes(code)) ?? ''
  }

  it('is asked for once its first code came, and not before', async () => {
    const ada = await api.makeCaller('Ada')
    const session = await signInAs(api, ada)
    const refused = await session.client.call('beginTotp', { body: { password: 'wrong password' }, ...from() })
    assert.equal(refused.body.code, 'invalid_credentials')
    const begun = await session.client.call('beginTotp', { body: { password: TEST_PASSWORD } })
    assert.match(begun.body.qr_svg, /^<svg [^]*<\/svg>\s*$/)
    assert.equal(new URL(begun.body.otpauth_uri).searchParams.get('secret'), begun.body.secret)
    assert.equal((await signIn(ada)).status, 200)
    const bad = await session.client.call('confirmTotp', { body: { code: wrong(begun.body.secret) } })
    assert.equal(bad.body.code, 'invalid_mfa_code')
    const code = codeOf(begun.body.secret)
    const done = await session.client.call('confirmTotp', { body: { code } })
    assert.equal(new Set(done.body.recovery_codes).size, 10)
    for (const each of done.body.recovery_codes) assert.match(each, /^[A-Z2-7]{24}$/)
    const { body } = await session.client.call('getMfa')
    assert.deepEqual([body.totp.enabled, body.recovery_codes_remaining], [true, 10])
    assert.equal((await session.client.call('getSession')).body.user.mfa_enabled, true)
    // The code that confirmed it is spent.
    assert.equal((await signIn(ada, { totp_code: code })).body.code, 'invalid_mfa_code')
    assert.equal(
      (await session.client.call('beginTotp', { body: { password: TEST_PASSWORD } })).body.code,
      'mfa_already_enabled',
    )
    const kept = await api.plane.database.rows<{ text: string }>(
      'select f::text as text from second_factors f union all select r::text from recovery_codes r',
    )
    for (const { text } of kept)
      for (const secret of [begun.body.secret, ...done.body.recovery_codes]) assert.ok(!text.includes(secret))
  })

  it('may be given with the password or in a second step, and no code is taken twice, on two replicas', async () => {
    const { caller, secret } = await enrolled('Bob')
    const proof = { totp_code: codeOf(secret) }
    const tokens = await Promise.all(Array.from({ length: 4 }, () => tokenOf(caller)))
    const answers = await Promise.all([
      ...tokens.map((token, i) => secondStep(token, proof, i % 2 === 0 ? api.nobody : replica)),
      signIn(caller, proof),
      signIn(caller, proof, replica),
    ])
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    const later = await signIn(caller, { totp_code: codeOf(secret, 1) })
    assert.equal(later.status, 200, later.text)
    assert.equal(later.body.user.mfa_enabled, true)
  })

  it('is a recovery code once, in any case and spelling, in one of many requests', async () => {
    const { caller, session, recoveryCodes } = await enrolled('Carol')
    const [first = '', second = ''] = recoveryCodes
    const spelled = `${first.slice(0, 12).toLowerCase()}-${first.slice(12)}`
    const tokens = await Promise.all(Array.from({ length: 6 }, () => tokenOf(caller)))
    const answers = await Promise.all(
      tokens.map((token, i) => secondStep(token, { recovery_code: spelled }, i % 2 === 0 ? api.nobody : replica)),
    )
    const [won] = answers.filter(({ status }) => status === 200)
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(won?.body.recovery_codes_remaining, 9)
    assert.equal((await signIn(caller, { recovery_code: first })).body.code, 'invalid_mfa_code')
    assert.equal((await signIn(caller, { recovery_code: second })).status, 200)
    const types = await api.plane.database.rows<{ type: string }>(
      `select type from account_events where user_id = $1 and type = 'recovery_code_used'`,
      [session.user.user_id],
    )
    assert.equal(types.length, 2)
  })

  it('keeps a recovery code that was given in a sign-in which came to nothing', async () => {
    const { caller, recoveryCodes } = await enrolled('Dora')
    const [code = ''] = recoveryCodes
    const token = await tokenOf(caller)
    const owner = new pg.Client({ connectionString: api.plane.url('svc_owner') })
    await owner.connect()
    try {
      // The last that a sign-in writes, long after the code was taken.
      await owner.query(
        `create function fail() returns trigger language plpgsql as $$ begin raise 'no disk is left'; end $$`,
      )
      await owner.query('create trigger fail before insert on sessions for each row execute function fail()')
      for (const attempt of [
        () => signIn(caller, { recovery_code: code }),
        () => secondStep(token, { recovery_code: code }),
      ])
        assert.equal((await attempt()).status, 500)
      await owner.query('drop function fail() cascade')
    } finally {
      await owner.end()
    }
    const whole = await secondStep(token, { recovery_code: code })
    assert.deepEqual([whole.status, whole.body.recovery_codes_remaining], [200, 9])
    assert.equal((await signIn(caller, { recovery_code: code })).body.code, 'invalid_mfa_code')
  })

  it('has a token that five tries or five minutes end, and that is no session', async () => {
    const { caller, secret } = await enrolled('Dan')
    const token = await tokenOf(caller)
    assert.equal((await new ApiClient(api.url, token).call('getSession')).status, 401)
    for (let i = 0; i < 5; i++)
      assert.equal((await secondStep(token, { totp_code: wrong(secret) })).body.code, 'invalid_mfa_code')
    assert.equal((await secondStep(token, { totp_code: codeOf(secret) })).body.code, 'invalid_token')
    const old = await tokenOf(caller)
    await api.plane.database.rows('update mfa_tokens set expires_at = now()')
    assert.equal((await secondStep(old, { totp_code: codeOf(secret) })).body.code, 'invalid_token')
    assert.equal((await secondStep('svc_mfa_junk', { totp_code: codeOf(secret) })).body.code, 'invalid_token')
  })

  it('counts wrong codes apart from wrong passwords, ten of an account in a quarter of an hour', async () => {
    const { caller, secret } = await enrolled('Eve')
    for (let i = 0; i < 9; i++) await signIn(caller, { password: 'wrong password' })
    // A right password with a wrong code forgives no wrong password, and adds none.
    for (let i = 0; i < 10; i++)
      assert.equal((await signIn(caller, { totp_code: wrong(secret) })).body.code, 'invalid_mfa_code')
    const over = await signIn(caller, { totp_code: codeOf(secret) })
    assert.deepEqual([over.status, over.body.code], [429, 'sign_in_rate_limited'])
    assert.equal((await signIn(caller, { password: 'wrong password' })).body.code, 'invalid_credentials')
    assert.equal((await signIn(caller)).body.code, 'invalid_credentials', 'the tenth wrong password locked it')
  })

  it('is taken of all who are right at the same moment, on two replicas, after nine wrong codes too', async () => {
    const { caller, session, secret, recoveryCodes } = await enrolled('Kim')
    for (let i = 0; i < 9; i++) await signIn(caller, { totp_code: wrong(secret) })
    const answers = await Promise.all(
      recoveryCodes.map((code, i) => signIn(caller, { recovery_code: code }, i % 2 === 0 ? api.nobody : replica)),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      recoveryCodes.map(() => 200),
    )
    assert.equal((await session.client.call('getMfa')).body.recovery_codes_remaining, 0)
  })

  it('is judged of one step after another of the same account, however many tokens wait: none holds what another drops', async () => {
    const { caller } = await enrolled('Nia')
    const [one, other] = [tokenDigest(await tokenOf(caller)), tokenDigest(await tokenOf(caller))]
    const { database } = api.plane
    const waits = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    let second: Promise<unknown> = Promise.resolve()
    await database.transaction(async sql => {
      const first = await tryMfaToken(sql, one, 5)
      assert.equal(first?.userId, caller.userId)
      let isOver = false as boolean
      second = database.transaction(also => tryMfaToken(also, other, 5)).finally(() => (isOver = true))
      while (!isOver && (await database.row(waits)) === undefined) await sleep(5)
      assert.equal(isOver, false, 'it did not wait for the first')
      await dropMfaTokens(sql, caller.userId)
    })
    assert.equal(await second, undefined)
  })

  it('is no attempt more of its client address, and passes when the address has none left; a wrong code counts', async () => {
    const { caller, secret, recoveryCodes } = await enrolled('Lea')
    const behind = { headers: { 'X-Forwarded-For': '203.0.113.1' } }
    const firstStep = () =>
      api.nobody.call('signIn', { body: { email: caller.email, password: TEST_PASSWORD }, ...behind })
    const tokenBehind = async (): Promise<string> => {
      const { body } = await firstStep()
      assert.equal(body.code, 'mfa_required')
      return String((body as unknown as Record<string, unknown>)['mfa_token'])
    }
    const step = async (token: string, proof: object) => {
      const { status, body } = await api.nobody.call('signInMfa', { body: { mfa_token: token, ...proof }, ...behind })
      return status === 200 ? 200 : body.code
    }
    // Of the twenty attempts ten are left after ten sign-ins in two steps.
    for (const code of recoveryCodes) assert.equal(await step(await tokenBehind(), { recovery_code: code }), 200)
    assert.equal(await step(await tokenBehind(), { totp_code: wrong(secret) }), 'invalid_mfa_code')
    for (let i = 0; i < 7; i++) assert.equal(await step('svc_mfa_junk', { totp_code: '000000' }), 'invalid_token')
    const last = await tokenBehind()
    assert.equal((await firstStep()).body.code, 'sign_in_rate_limited')
    assert.equal(await step('svc_mfa_junk', { totp_code: '000000' }), 'sign_in_rate_limited')
    assert.equal(await step(last, { totp_code: codeOf(secret) }), 200)
    // Being right gives back nothing of what counted before.
    assert.equal((await firstStep()).body.code, 'sign_in_rate_limited')
  })

  it('guessed at from an address without an attempt left ends with its token, and counts of its account as ever', async () => {
    const { caller, secret } = await enrolled('Mia')
    const full = { headers: { 'X-Forwarded-For': '203.0.113.2' } }
    const token = await tokenOf(caller)
    const guess = (code: string) =>
      api.nobody.call('signInMfa', { body: { mfa_token: token, totp_code: code }, ...full })
    for (let i = 0; i < 20; i++)
      await api.nobody.call('signInMfa', { body: { mfa_token: 'svc_mfa_junk', totp_code: '000000' }, ...full })
    for (let i = 0; i < 5; i++) assert.equal((await guess(wrong(secret))).body.code, 'invalid_mfa_code')
    assert.equal((await guess(codeOf(secret))).body.code, 'sign_in_rate_limited')
    for (let i = 0; i < 5; i++)
      assert.equal((await signIn(caller, { totp_code: wrong(secret) })).body.code, 'invalid_mfa_code')
    const over = await signIn(caller, { totp_code: codeOf(secret) })
    assert.deepEqual([over.status, over.body.code], [429, 'sign_in_rate_limited'])
  })

  it('is removed, and its recovery codes renewed, with the password and a code', async () => {
    const { caller, session, secret, recoveryCodes } = await enrolled('Fay')
    const other = await signIn(caller, { recovery_code: recoveryCodes[0] })
    const waiting = await tokenOf(caller)
    const renewed = await session.client.call('renewRecoveryCodes', {
      body: { password: TEST_PASSWORD, totp_code: codeOf(secret) },
    })
    assert.equal(renewed.body.recovery_codes.length, 10)
    assert.equal((await signIn(caller, { recovery_code: recoveryCodes[1] })).body.code, 'invalid_mfa_code')
    const none = await session.client.call('removeTotp', { body: { password: TEST_PASSWORD } })
    assert.deepEqual([none.status, none.body.errors?.[0]?.pointer], [400, '#/totp_code'])
    const body = { password: TEST_PASSWORD, recovery_code: renewed.body.recovery_codes[0] }
    assert.equal((await session.client.call('removeTotp', { body })).status, 204)
    assert.equal((await new ApiClient(api.url, other.body.token).call('getSession')).status, 401)
    assert.equal((await session.client.call('getMfa')).body.recovery_codes_remaining, 0)
    assert.equal((await secondStep(waiting, { totp_code: codeOf(secret, 1) })).body.code, 'invalid_token')
    assert.equal((await signIn(caller)).status, 200)
  })

  it('is a secret drawn last: one that waited is void, and one that waited too long', async () => {
    const session = await signInAs(api, await api.makeCaller('Gil'))
    const first = await beginTotp(session)
    const second = await beginTotp(session)
    const confirm = (secret: string) => session.client.call('confirmTotp', { body: { code: codeOf(secret) } })
    assert.equal((await confirm(first)).body.code, 'invalid_mfa_code')
    await api.plane.database.rows('update second_factors set pending_until = now() where enabled_at is null')
    assert.equal((await confirm(second)).body.code, 'invalid_mfa_code')
    assert.equal((await confirm(await beginTotp(session))).status, 200)
  })

  it('stays when the password is set anew', async () => {
    const { caller, session, secret } = await enrolled('Hal')
    const waiting = await tokenOf(caller)
    const next = 'seven wet stones at the pier'
    const body = { current_password: TEST_PASSWORD, new_password: next }
    assert.equal((await session.client.call('changePassword', { body, ...from() })).status, 204)
    assert.equal((await secondStep(waiting, { totp_code: codeOf(secret) })).body.code, 'invalid_token')
    assert.equal((await signIn(caller, { password: next })).body.code, 'mfa_required')
    assert.equal((await signIn(caller, { password: next, totp_code: codeOf(secret) })).status, 200)
  })
})
