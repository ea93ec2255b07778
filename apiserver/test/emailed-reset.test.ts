import assert from 'node:assert/strict'
import { fromAnywhere, type LoginWorld, startLoginWorld } from '../../testkit/login-world.ts'
import { shownOf } from '../../testkit/shown-answer.ts'
import { signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'

const NEW_PASSWORD = 'seven wet stones at the pier'

describe('a new password by mail', () => {
  let world: LoginWorld
  before(async () => {
    world = await startLoginWorld({ replicas: 'processes' })
  })
  after(() => world.stop())

  const request = (email: string, at = 0) =>
    world.replicas[at]!.call('requestPasswordReset', { body: { email }, ...fromAnywhere() })
  const asked = async (email: string): Promise<string> => {
    assert.equal((await request(email)).status, 202)
    const { text } = await world.nextLetter(email)
    const token = /\/reset-password\/(svc_rst_[0-9A-Za-z]{43})\b/.exec(text)?.[1]
    assert.ok(token !== undefined, text)
    return token
  }
  const complete = (token: string, password = NEW_PASSWORD, at = 1) =>
    world.replicas[at]!.call('completePasswordReset', { body: { token, new_password: password }, ...fromAnywhere() })
  const signIn = (email: string, password: string) =>
    world.api.nobody.call('signIn', { body: { email, password }, ...fromAnywhere() })
  const rows = (sql: string, values: unknown[] = []) =>
    world.api.plane.database.rows<Record<string, unknown>>(sql, values)

  it('is set with the link of a letter, once, ends every session, and proves the address', async () => {
    const ada = await world.api.makeCaller('Ada')
    const before = await signInAs(world.api, ada)
    const token = await asked(ada.email)
    assert.equal((await complete(token)).status, 204)
    assert.equal((await before.client.call('getSession')).status, 401)
    assert.equal((await signIn(ada.email, TEST_PASSWORD)).status, 401)
    assert.equal((await signIn(ada.email, NEW_PASSWORD)).status, 200)
    assert.equal((await complete(token)).body.code, 'invalid_reset_token')
    const [row] = await rows('select email_verified_at as verified from users where user_id = $1', [ada.userId])
    assert.ok(row?.['verified'] instanceof Date)
  })

  it('is set by one of many who have the link at the same moment, on two replicas', async () => {
    const hal = await world.api.makeCaller('Hal')
    const token = await asked(hal.email)
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => complete(token, `${NEW_PASSWORD} ${n}`, n % 2)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 400, 400, 400, 400, 400])
    const first = answers.findIndex(({ status }) => status === 204)
    assert.equal((await signIn(hal.email, `${NEW_PASSWORD} ${first}`)).status, 200)
  })

  it('is asked for alike by everybody; the link lives an hour and is replaced by the next', async () => {
    const [bob, disabled] = [await world.api.makeCaller('Bob'), await world.api.makeCaller('disabled')]
    await rows('update users set disabled_at = now() where user_id = $1', [disabled.userId])
    const answers = []
    for (const email of [bob.email, disabled.email, 'nobody@example.com']) answers.push(await request(email))
    assert.equal(new Set(answers.map(shownOf)).size, 1, answers.map(shownOf).join('\n'))
    const first = /svc_rst_\w+/.exec((await world.nextLetter(bob.email)).text)![0]
    // Within the minute nothing changes.
    assert.equal((await request(bob.email, 1)).status, 202)
    await world.pass(61)
    const second = await asked(bob.email)
    assert.equal((await complete(first)).body.code, 'invalid_reset_token')
    await rows(`update password_resets set expires_at = expires_at - interval '3601 s'`)
    assert.equal((await complete(second)).body.code, 'invalid_reset_token')
    await world.mailIsOut()
    assert.deepEqual(
      world.relay.letters.filter(({ to }) => to !== bob.email && to.endsWith('@example.com') && /nobody/.test(to)),
      [],
    )
    assert.equal(world.relay.letters.filter(({ to }) => to === bob.email).length, 2)
    assert.ok(world.relay.letters.every(({ to }) => to !== disabled.email))
  })

  it('is asked for five times in five minutes, by a client who is told, and for an address where nobody is', async () => {
    const from = fromAnywhere()
    const ask = (n: number) =>
      world.replicas[n % 2]!.call('requestPasswordReset', { body: { email: `stranger${n}@example.com` }, ...from })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => ask(n)))
    const told = answers.filter(({ status }) => status === 429)
    assert.deepEqual([told.length, answers.length - told.length], [3, 5])
    for (const { body, headers } of told) {
      const seconds = Number(headers.get('retry-after'))
      assert.ok(body.code === 'mail_rate_limited' && seconds > 290 && seconds <= 300, `${seconds} s`)
    }
    const cleo = await world.api.makeCaller('Cleo')
    for (let i = 0; i < 7; i++) {
      assert.equal((await request(cleo.email, i % 2)).status, 202)
      await world.pass(20)
    }
    await world.mailIsOut()
    // At 0 and 60 s; the fifth request was at 80 s, and the next two found no room.
    assert.equal(world.relay.letters.filter(({ to }) => to === cleo.email).length, 2)
  })

  it('keeps its token nowhere', async () => {
    const tokens = world.relay.letters.map(({ text }) => /svc_rst_(\w+)/.exec(text)![1]!)
    const kept = await rows(
      `select o::text as text from mail_outbox o union all select e::text from account_events e union all select r::text from password_resets r`,
    )
    // The prefix of a token is kept to be shown; of the rest nothing.
    const sinks = [...world.api.logged, ...kept.map(({ text }) => String(text))].join('\n')
    for (const token of tokens) assert.ok(!sinks.includes(token.slice(8)))
  })
})
