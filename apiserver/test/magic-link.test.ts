import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer } from '../../testkit/api-server.ts'
import { REPLICAS, sized } from '../../testkit/full.ts'
import { CONSOLE_URL, fromAnywhere, type LoginWorld, linkAndCode, startLoginWorld } from '../../testkit/login-world.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { shownOf } from '../../testkit/shown-answer.ts'
import { givePassword, signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'

const WRONG = { status: 401, code: 'invalid_magic_link' }

describe('signing in by mail', () => {
  let world: LoginWorld
  before(async () => {
    world = await startLoginWorld({ replicas: REPLICAS, environment: { SERVICE_PUBLIC_SIGNUP: '1' } })
  })
  after(() => world.stop())

  let people = 0
  const fresh = (): string => `person${++people}@example.com`
  const request = (email: string, at = 0, from = fromAnywhere()) =>
    world.replicas[at]!.call('requestMagicLink', { body: { email }, ...from })
  const verify = (body: object, at = 0, from = fromAnywhere()) =>
    world.replicas[at]!.call('verifyMagicLink', { body, ...from })
  const preview = (token: string, at = 0) => world.replicas[at]!.call('previewMagicLink', { body: { token } })
  const asked = async (email: string) => {
    assert.equal((await request(email)).status, 202)
    // In its one spelling.
    return linkAndCode(await world.nextLetter(email.toLowerCase()))
  }
  const outcome = ({ status, body }: { status: number; body: { code?: string } }) => ({ status, code: body.code })
  const refused = async (body: object) => assert.deepEqual(outcome(await verify(body)), WRONG)
  const rows = (sql: string, values: unknown[] = []) =>
    world.api.plane.database.rows<Record<string, unknown>>(sql, values)
  const events = async (email: string): Promise<unknown[]> =>
    (
      await rows(
        `select type from account_events where email = $1 or user_id = (select user_id from users where email = $1) order by id`,
        [email],
      )
    ).map(({ type }) => type)
  const caller = async (name: string, options = {}): Promise<ApiCaller> => {
    const made = await world.api.makeCaller(name, options)
    return made
  }

  for (const way of ['link', 'code'] as const)
    it(`begins a session with the ${way} of a letter, once, and makes the account of a new address`, async () => {
      const email = fresh()
      const { token, code } = await asked(email.toUpperCase())
      const body = way === 'link' ? { token } : { email: email.toUpperCase(), code }
      const answer = await verify(body, 1)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(
        [answer.body.user.email, answer.body.user.is_operator, answer.body.session.method],
        [email, false, 'email_link'],
      )
      const client = new ApiClient(world.api.url, answer.body.token)
      assert.equal((await client.call('getSession')).status, 200)
      await refused({ token })
      await refused({ email, code })
      assert.deepEqual((await events(email)).slice(0, 5), [
        'magic_link_requested',
        'create_user',
        'magic_link_used',
        'email_verified',
        'sign_in',
      ])
    })

  it('looks at a link without doing anything, however often', async () => {
    const email = fresh()
    const { token } = await asked(email)
    for (let i = 0; i < 3; i++) {
      const { status, body } = await preview(token, i % 2)
      assert.equal(status, 200)
      assert.deepEqual([body.email_hint, body.creates_account], ['p***@example.com', true])
    }
    assert.deepEqual(await rows('select 1 from users where email = $1', [email]), [])
    assert.equal((await verify({ token })).status, 200)
    assert.deepEqual(outcome(await preview(token)), WRONG)
    await world.pass(61)
    assert.equal((await preview((await asked(email)).token)).body.creates_account, false)
  })

  it('answers a request alike for whoever has the address, and writes to whom it should', async () => {
    const [member, disabled, operator] = [await caller('m'), await caller('d'), await caller('o', { isOperator: true })]
    await rows('update users set disabled_at = now() where user_id = $1', [disabled.userId])
    const answers = []
    for (const email of [fresh(), member.email, disabled.email, operator.email]) answers.push(await request(email))
    assert.equal(new Set(answers.map(shownOf)).size, 1, answers.map(shownOf).join('\n'))
    await world.mailIsOut()
    linkAndCode(await world.nextLetter(member.email))
    const notice = await world.nextLetter(operator.email)
    assert.ok(!/svc_mgl_|\d{6}/.test(notice.text) && notice.text.includes(`${CONSOLE_URL}/sign-in`))
    assert.ok(world.relay.letters.every(({ to }) => to !== disabled.email))
  })

  it('never signs an administrator in, nor a disabled account, whatever they hold', async () => {
    const one = await caller('soon an operator')
    const { token } = await asked(one.email)
    await rows('update users set is_operator = true where user_id = $1', [one.userId])
    assert.deepEqual(outcome(await preview(token)), WRONG)
    await refused({ token })
    const two = await caller('soon disabled')
    const { code } = await asked(two.email)
    await rows('update users set disabled_at = now() where user_id = $1', [two.userId])
    await refused({ email: two.email, code })
    assert.deepEqual(await rows('select 1 from sessions where user_id = any($1)', [[one.userId, two.userId]]), [])
  })

  it('takes the newest link alone, and nothing after 15 minutes', async () => {
    const email = fresh()
    const first = await asked(email)
    await world.pass(61)
    const second = await asked(email)
    await refused({ token: first.token })
    await refused({ email, code: first.code })
    await world.pass(901)
    assert.deepEqual(outcome(await preview(second.token)), WRONG)
    await refused({ token: second.token })
    const third = await asked(email)
    assert.equal((await verify({ email, code: third.code })).status, 200)
  })

  it('writes one letter a minute, and what is asked for in between changes nothing', async () => {
    const email = fresh()
    const { token } = await asked(email)
    for (let i = 0; i < 3; i++) assert.equal((await request(email, i % 2)).status, 202)
    await world.mailIsOut()
    assert.equal(world.relay.letters.filter(({ to }) => to === email).length, 1)
    assert.equal((await verify({ token })).status, 200)
  })

  it('is asked for five times in five minutes, by a client who is told, and for an address where nobody is', async () => {
    const from = fromAnywhere()
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => request(fresh(), n % 2, from)))
    const told = answers.filter(({ status }) => status === 429)
    assert.equal(told.length, 3)
    assert.ok(
      told.every(({ body, headers }) => body.code === 'mail_rate_limited' && Number(headers.get('retry-after')) > 290),
    )
    const email = fresh()
    for (let i = 0; i < 7; i++) {
      assert.equal((await request(email)).status, 202)
      await world.pass(20)
    }
    await world.mailIsOut()
    // At 0, 60 s; the fifth request was at 80 s, and the next two found no room.
    assert.equal(world.relay.letters.filter(({ to }) => to === email).length, 2)
  })

  it('takes five guesses of a code, of two replicas at the same moment too, and the link still works', async () => {
    for (let round = 0; round < sized(2, 20); round++) {
      const email = fresh()
      const { token, code } = await asked(email)
      const wrong = code === '000000' ? '111111' : '000000'
      const guesses = await Promise.all(Array.from({ length: 12 }, (_, n) => verify({ email, code: wrong }, n % 2)))
      assert.ok(guesses.every(each => each.status === 401))
      const [{ guesses: counted } = {}] = await rows('select guesses from magic_links where email = $1', [email])
      assert.equal(counted, 5)
      await refused({ email, code })
      assert.equal((await verify({ token })).status, 200)
    }
  })

  it('takes twenty wrong codes of an address a day, however many codes are asked for', async () => {
    const email = fresh()
    for (let n = 0; n < 4; n++) {
      const { code } = await asked(email)
      const wrong = code === '000000' ? '111111' : '000000'
      for (let guess = 0; guess < 5; guess++) await refused({ email, code: wrong })
      await world.pass(61)
    }
    const { code, token } = await asked(email)
    await refused({ email, code })
    assert.equal((await verify({ token })).status, 200)
  })

  it('lets one of many win who use a link and its code at the same moment on two replicas', async () => {
    for (let round = 0; round < sized(3, 50); round++) {
      const email = fresh()
      const { token, code } = await asked(email)
      const answers = await Promise.all(
        Array.from({ length: 4 }, (_, n) => verify(n < 2 ? { token } : { email, code }, n % 2)),
      )
      assert.deepEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 401, 401, 401],
      )
      assert.equal((await rows('select 1 from users where email = $1', [email])).length, 1)
    }
  })

  it('counts as a sign-in attempt of its client’s address', async () => {
    const from = fromAnywhere()
    const answers = await Promise.all(
      Array.from({ length: 22 }, (_, n) => verify({ token: `svc_mgl_${n}` }, n % 2, from)),
    )
    const limited = answers.filter(({ body }) => body.code === 'sign_in_rate_limited')
    assert.equal(limited.length, 2)
  })

  it('removes a password that somebody set before the address was proved, with their sessions and tokens; once', async () => {
    const victim = await caller('claimed')
    await givePassword(world.api, victim.userId)
    const thief = await signInAs(world.api, victim)
    const { token } = await asked(victim.email)
    assert.equal((await verify({ token })).status, 200)
    assert.equal((await thief.client.call('getSession')).status, 401)
    assert.equal((await victim.call('listTokens')).status, 401)
    const signIn = () =>
      world.api.nobody.call('signIn', { body: { email: victim.email, password: TEST_PASSWORD }, ...fromAnywhere() })
    assert.equal((await signIn()).status, 401)
    // What its user sets from now on stays.
    await givePassword(world.api, victim.userId)
    const kept = await signInAs(world.api, victim)
    await world.pass(61)
    assert.equal((await verify({ token: (await asked(victim.email)).token })).status, 200)
    assert.equal((await kept.client.call('getSession')).status, 200)
    assert.equal((await signIn()).status, 200)
  })

  it('asks for the second factor of an account that has one, and only with it proves the address, which keeps the password', async () => {
    const person = await caller('careful')
    await givePassword(world.api, person.userId)
    const before = await signInAs(world.api, person)
    const { secret } = await enrolTotp(before)
    const half = await verify({ token: (await asked(person.email)).token })
    assert.deepEqual(outcome(half), { status: 401, code: 'mfa_required' })
    const { mfa_token: next } = half.body as unknown as { readonly mfa_token: string }
    assert.ok(!(await events(person.email)).includes('email_verified'))
    const proof = { mfa_token: next, totp_code: codeOf(secret) }
    const whole = await world.replicas[1].call('signInMfa', { body: proof, ...fromAnywhere() })
    assert.equal(whole.status, 200, whole.text)
    assert.equal(whole.body.session.method, 'email_link')
    const [proved] = await rows(`select metadata from account_events where type = 'email_verified' and user_id = $1`, [
      person.userId,
    ])
    assert.deepEqual(
      [
        (proved!['metadata'] as Record<string, unknown>)['password_removed'],
        (await before.client.call('getSession')).status,
      ],
      [false, 200],
    )
  })

  it('refuses bodies that are none, and says nothing of what was typed', async () => {
    for (const body of [
      {},
      { token: 'svc_mgl_canary', code: '123456' },
      { email: 'ada@example.com', code: '12345' },
      { email: 'ada@example.com', code: '１２３４５６' },
      { token: '' },
    ]) {
      const answer = await verify(body)
      assert.equal(answer.status, 400)
      assert.ok(!answer.text.includes('canary'))
    }
    await refused({ token: 'svc_mgl_canary' })
  })

  it('keeps tokens and codes nowhere: not in the log, an event, nor in the outbox once it left', async () => {
    const secrets = new Set<string>()
    for (const { text } of world.relay.letters) {
      const token = /svc_mgl_([0-9A-Za-z]{43})/.exec(text)?.[1]
      if (token !== undefined) secrets.add(token)
    }
    assert.ok(secrets.size > 10)
    await world.mailIsOut()
    const kept = (
      await rows(
        `select o::text as text from mail_outbox o union all select e::text from account_events e union all select m::text from magic_links m`,
      )
    ).map(({ text }) => String(text))
    for (const sink of [world.api.logged.join('\n'), kept.join('\n')])
      for (const secret of secrets) assert.ok(!sink.includes(secret))
    assert.deepEqual(await rows('select 1 from mail_outbox where sealed_secret is not null'), [])
    assert.ok(world.api.logged.every(line => !line.includes('canary-relay-token')))
  })
})

describe('signing in by mail, where sign-up is closed', () => {
  it('makes no account, and a stranger’s request does the same as a member’s', async () => {
    const world = await startLoginWorld()
    const [nobody] = world.replicas
    const email = 'stranger@example.com'
    assert.equal((await nobody.call('requestMagicLink', { body: { email } })).status, 202)
    await world.mailIsOut()
    assert.equal(world.relay.letters.length, 0)
    const [{ text } = { text: '' }] = await world.api.plane.database.rows<{ text: string }>(
      'select o::text as text from mail_outbox o where recipient = $1',
      [email],
    )
    assert.ok(text.includes('unwanted') && !text.includes('v1.'))
    await world.stop()
  })

  it('is not there where no mail is configured', async () => {
    const api = await startTestApiServer({ operator: false })
    const answer = await api.nobody.call('requestMagicLink', { body: { email: 'ada@example.com' } })
    assert.deepEqual([answer.status, answer.body.code], [409, 'mail_not_configured'])
    await api.stop()
  })
})
