import assert from 'node:assert/strict'
import type { Role } from '../../lib/model/credential.ts'
import type { ApiCaller } from '../../testkit/api-server.ts'
import { startTestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, makeTeam, ORG } from '../../testkit/api-team.ts'
import { REPLICAS, sized } from '../../testkit/full.ts'
import { CONSOLE_URL, fromAnywhere, type LoginWorld, startLoginWorld } from '../../testkit/login-world.ts'
import type { ReceivedLetter } from '../../testkit/mail-servers.ts'
import { shownOf } from '../../testkit/shown-answer.ts'
import { signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'

const tokenIn = ({ text }: ReceivedLetter): string => {
  const token = /\/invitations\/(svc_inv_[0-9A-Za-z]{43})\b/.exec(text)?.[1]
  assert.ok(token !== undefined && text.includes(`${CONSOLE_URL}/invitations/${token}`), text)
  return token
}

describe('an invitation', () => {
  let world: LoginWorld
  let team: ApiTeam
  before(async () => {
    world = await startLoginWorld({ replicas: REPLICAS })
    team = await makeTeam(world.api)
  })
  after(() => world.stop())

  let people = 0
  const fresh = (): string => `guest${++people}@example.com`
  const rows = (sql: string, values: unknown[] = []) =>
    world.api.plane.database.rows<Record<string, unknown>>(sql, values)
  const invite = async (email: string, role: Role = 'developer', by: ApiCaller = team.owner) => {
    await rows(`delete from attempts where bucket = 'invitations'`)
    return by.call('createInvitation', { params: { org: ORG }, body: { email, role } })
  }
  const invited = async (email: string, role: Role = 'developer', by: ApiCaller = team.owner) => {
    const made = await invite(email, role, by)
    assert.equal(made.status, 201, made.text)
    return { id: made.body.invitation_id, token: tokenIn(await world.nextLetter(email)) }
  }
  const accept = (token: string, more: object = { password: TEST_PASSWORD }, at = 0) =>
    world.replicas[at]!.call('acceptInvitation', { body: { token, ...more } })
  const preview = (token: string) => world.api.nobody.call('previewInvitation', { body: { token } })
  const code = ({ status, body }: { status: number; body: { code?: string } }) => `${status} ${body.code}`
  const members = async (): Promise<string[]> =>
    (await team.owner.call('listMembers', { params: { org: ORG } })).body.members.map(({ email }) => email ?? '')

  it('makes a new account a member, with the role and the password, and begins no session', async () => {
    const email = fresh()
    const { id, token } = await invited(email.toUpperCase().toLowerCase())
    assert.deepEqual(await rows('select 1 from users where email = $1', [email]), [])
    const shown = await preview(token)
    assert.deepEqual(shown.body, {
      organization_id: ORG,
      organization_name: 'Acme',
      role: 'developer',
      email,
      account_exists: false,
    })
    assert.equal(code(await accept(token, {})), '400 validation_failed')
    assert.equal(code(await accept(token, { password: 'too short' })), '400 password_not_allowed')
    const answer = await accept(token, { password: TEST_PASSWORD, name: 'Guest' })
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual(Object.keys(answer.body).toSorted(), ['organization_id', 'role', 'user_id'])
    assert.deepEqual(await rows('select 1 from sessions where user_id = $1', [answer.body.user_id]), [])
    const signedIn = await world.api.nobody.call('signIn', {
      body: { email, password: TEST_PASSWORD },
      ...fromAnywhere(),
    })
    assert.deepEqual([signedIn.status, signedIn.body.user.name], [200, 'Guest'])
    assert.equal(code(await accept(token)), '404 invitation_not_found')
    assert.equal(code(await preview(token)), '404 invitation_not_found')
    const audit = await rows(
      `select action, actor, metadata ->> 'role' as role from audit_events where resource_id = $1 order by id`,
      [id],
    )
    assert.deepEqual(audit, [
      { action: 'create_invitation', actor: `user:${team.owner.userId}`, role: 'developer' },
      { action: 'accept_invitation', actor: `user:${answer.body.user_id}`, role: 'developer' },
    ])
    const [{ email_verified_at: verified } = {}] = await rows('select email_verified_at from users where email = $1', [
      email,
    ])
    assert.ok(verified instanceof Date, 'the link went to that address alone')
  })

  it('of an account is accepted in a session of that account, and in no other way', async () => {
    const guest = await world.api.makeCaller('guest')
    const stranger = await signInAs(world.api, await world.api.makeCaller('stranger'))
    const own = await signInAs(world.api, guest)
    const { token } = await invited(guest.email, 'viewer')
    assert.equal((await preview(token)).body.account_exists, true)
    const body = { token }
    assert.equal(code(await accept(token)), '403 invitation_email_mismatch')
    assert.equal(code(await stranger.client.call('acceptInvitation', { body })), '403 invitation_email_mismatch')
    assert.equal(code(await guest.call('acceptInvitation', { body })), '403 credential_not_allowed')
    assert.equal(
      code(await stranger.client.call('acceptInvitation', { body: { ...body, password: TEST_PASSWORD } })),
      '403 invitation_email_mismatch',
    )
    const answer = await own.client.call('acceptInvitation', { body })
    assert.deepEqual(answer.body, { organization_id: ORG, role: 'viewer', user_id: guest.userId })
    assert.equal(code(await invite(guest.email)), '409 member_exists')
    // A bad bearer is no nobody.
    assert.equal(
      (await world.api.nobody.call('acceptInvitation', { body, headers: { Authorization: 'Bearer junk' } })).status,
      401,
    )
  })

  it('is answered alike for whoever has the address: an admin learns nothing of who has an account', async () => {
    const disabled = await world.api.makeCaller('disabled')
    await rows('update users set disabled_at = now() where user_id = $1', [disabled.userId])
    const answers = []
    for (const email of [fresh(), (await world.api.makeCaller('known')).email, disabled.email]) {
      const answer = await invite(email)
      assert.equal(answer.status, 201, answer.text)
      const { invitation_id, created_at, expires_at } = answer.body
      // What differs between any two, of one length each but for the address.
      const own = [invitation_id, email, created_at, expires_at].map(String)
      const text = own.reduce((rest, value) => rest.replaceAll(value, '…'), answer.text)
      const headers = new Headers([...answer.headers].filter(([name]) => name !== 'content-length'))
      answers.push({ status: answer.status, text, headers })
      assert.equal(Number(answer.headers.get('content-length')), Buffer.byteLength(answer.text))
    }
    assert.equal(new Set(answers.map(shownOf)).size, 1, answers.map(shownOf).join('\n'))
    assert.ok(answers[0]?.text.includes('…'))
  })

  it('to an address without an account is nobody’s who is signed in as somebody else', async () => {
    const { token } = await invited(fresh())
    const other = await signInAs(world.api, team.viewer)
    assert.equal(
      code(await other.client.call('acceptInvitation', { body: { token, password: TEST_PASSWORD } })),
      '403 invitation_email_mismatch',
    )
    assert.equal((await accept(token)).status, 201)
  })

  it('is replaced by the next to the same address, with its link and a letter that did not leave', async () => {
    const email = fresh()
    const first = await invited(email)
    const made = await invite(email, 'viewer')
    assert.equal(made.status, 201)
    assert.equal(code(await preview(first.token)), '404 invitation_not_found')
    assert.equal(code(await accept(first.token)), '404 invitation_not_found')
    // The second letter waits for its minute; the third replaces it.
    assert.equal((await invite(email, 'admin')).status, 201)
    const letters = await rows(
      `select state, next_attempt_at > now() + interval '50 s' as later from mail_outbox where recipient = $1 order by created_at, id`,
      [email],
    )
    assert.deepEqual(letters, [
      { state: 'sent', later: false },
      { state: 'withdrawn', later: true },
      { state: 'waiting', later: true },
    ])
    await rows(`update mail_outbox set next_attempt_at = now() where recipient = $1 and state = 'waiting'`, [email])
    const token = tokenIn(await world.nextLetter(email))
    assert.equal((await accept(token)).body.role, 'admin')
    const { body } = await team.owner.call('listInvitations', { params: { org: ORG } })
    assert.ok(body.invitations.every(each => each.email !== email))
  })

  it('reaches somebody whom two organizations invite in the same minute', async () => {
    const email = fresh()
    await invited(email)
    const other = await team.outsider.call('createInvitation', {
      params: { org: 'other' },
      body: { email, role: 'viewer' },
    })
    assert.equal(other.status, 201)
    await rows(`update mail_outbox set next_attempt_at = now() where recipient = $1 and state = 'waiting'`, [email])
    assert.equal((await preview(tokenIn(await world.nextLetter(email)))).body.organization_id, 'other')
  })

  it('ends when it is taken back, and after seven days', async () => {
    const [one, two] = [await invited(fresh()), await invited(fresh())]
    const params = { org: ORG, invitation: one.id }
    assert.equal((await team.admin.call('revokeInvitation', { params })).status, 204)
    assert.equal(code(await team.admin.call('revokeInvitation', { params })), '404 invitation_not_found')
    assert.equal(code(await accept(one.token)), '404 invitation_not_found')
    await world.pass(7 * 86_400 - 5)
    assert.equal((await preview(two.token)).status, 200)
    await world.pass(6)
    assert.equal(code(await accept(two.token)), '404 invitation_not_found')
  })

  it('of an owner is an owner’s to give, to replace and to take back', async () => {
    const email = fresh()
    assert.equal(code(await invite(email, 'owner', team.admin)), '403 forbidden')
    const { id } = await invited(email, 'owner')
    assert.equal(code(await invite(email, 'viewer', team.admin)), '403 forbidden')
    const params = { org: ORG, invitation: id }
    assert.equal(code(await team.admin.call('revokeInvitation', { params })), '403 forbidden')
    assert.equal((await team.owner.call('revokeInvitation', { params })).status, 204)
  })

  it('gives what its inviter could give at the moment it is accepted, and no more', async () => {
    const role = (subject: ApiCaller, now: Role) =>
      team.owner.call('putMember', { params: { org: ORG, subject: `user:${subject.userId}` }, body: { role: now } })
    const inviter = await world.api.makeCaller('inviter')
    await role(inviter, 'owner')
    const [asOwner, asDeveloper] = [
      await invited(fresh(), 'owner', inviter),
      await invited(fresh(), 'developer', inviter),
    ]
    await role(inviter, 'admin')
    assert.equal(code(await accept(asOwner.token)), '404 invitation_not_found')
    assert.equal(code(await preview(asOwner.token)), '404 invitation_not_found')
    await role(inviter, 'developer')
    assert.equal(code(await accept(asDeveloper.token)), '404 invitation_not_found')
    await role(inviter, 'admin')
    await rows('update users set disabled_at = now() where user_id = $1', [inviter.userId])
    assert.equal(code(await accept(asDeveloper.token)), '404 invitation_not_found')
    await rows('update users set disabled_at = null where user_id = $1', [inviter.userId])
    assert.equal((await accept(asDeveloper.token)).status, 201)
    await role(inviter, 'admin')
    assert.equal(
      (await team.owner.call('removeMember', { params: { org: ORG, subject: `user:${inviter.userId}` } })).status,
      204,
    )
    assert.equal(code(await accept(asOwner.token)), '404 invitation_not_found')
  })

  it('is accepted once, of many who try at the same moment on two replicas', async () => {
    for (let round = 0; round < sized(2, 50); round++) {
      const email = fresh()
      const { token } = await invited(email)
      const answers = await Promise.all(
        Array.from({ length: 4 }, (_, n) => accept(token, { password: TEST_PASSWORD }, n % 2)),
      )
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
      assert.equal(statuses.filter(status => status === 201).length, 1, String(statuses))
      assert.ok(
        statuses.slice(1).every(status => status === 404 || status === 403),
        String(statuses),
      )
      assert.equal((await members()).filter(each => each === email).length, 1)
      assert.equal((await rows('select 1 from users where email = $1', [email])).length, 1)
    }
  })

  it('is given or taken back, never both, when the two meet', async () => {
    for (let round = 0; round < sized(2, 50); round++) {
      const email = fresh()
      const { id, token } = await invited(email)
      const [taken, given] = await Promise.all([
        team.owner.call('revokeInvitation', { params: { org: ORG, invitation: id } }),
        accept(token, { password: TEST_PASSWORD }, 1),
      ])
      const outcome = `${taken.status} ${given.status}`
      assert.ok(outcome === '204 404' || outcome === '404 201', outcome)
      assert.equal((await members()).includes(email), given.status === 201)
    }
  })

  it('is one of thirty an hour and two hundred open ones', async () => {
    const params = { org: 'other' }
    const answers = []
    for (let n = 0; n < 31; n++)
      answers.push(await team.outsider.call('createInvitation', { params, body: { email: fresh(), role: 'viewer' } }))
    const refused = answers.filter(({ status }) => status !== 201)
    assert.ok(refused.length >= 1 && refused.every(each => code(each) === '429 rate_limited'))
    await rows(
      `insert into invitations (id, organization_id, email, role, invited_by, token_digest, by_mail, expires_at)
       select 'inv_' || lpad(n::text, 26, '0'), 'other', n || '@example.com', 'viewer', $1, sha256(n::text::bytea), true, now() + interval '1 day'
       from generate_series(1, 200 - (select count(*) from invitations where organization_id = 'other' and expires_at > now())) n`,
      [team.outsider.userId],
    )
    await rows(`delete from attempts where bucket = 'invitations'`)
    const more = await team.outsider.call('createInvitation', { params, body: { email: fresh(), role: 'viewer' } })
    assert.equal(code(more), '422 quota_exceeded')
    // One that is there already can be sent anew.
    const again = await team.outsider.call('createInvitation', {
      params,
      body: { email: '1@example.com', role: 'viewer' },
    })
    assert.equal(again.status, 201, again.text)
  })

  it('leaves no token in the log, in an event, nor in a row', async () => {
    const secrets = world.relay.letters.flatMap(({ text }) => /svc_inv_([0-9A-Za-z]{43})/.exec(text)?.[1] ?? [])
    assert.ok(secrets.length > 10)
    const kept = await rows(
      `select o::text as text from mail_outbox o union all select e::text from audit_events e union all select i::text from invitations i
       union all select k::text from idempotency_keys k`,
    )
    const sinks = [...world.api.logged, ...kept.map(({ text }) => String(text))].join('\n')
    for (const secret of secrets) assert.ok(!sinks.includes(secret))
  })
})

describe('an invitation where no mail is configured', () => {
  it('is a link in the answer, for ten minutes, and proves no address', async () => {
    const api = await startTestApiServer({ operator: false, environment: { SERVICE_CONSOLE_URL: CONSOLE_URL } })
    const { owner } = await makeTeam(api)
    const request = { params: { org: ORG }, body: { email: 'guest@example.com', role: 'viewer' }, key: 'once' }
    const made = await owner.call('createInvitation', request)
    const url = made.body.invite_url ?? ''
    assert.match(url, /^https:\/\/console\.example\.com\/invitations\/svc_inv_[0-9A-Za-z]{43}$/)
    assert.equal((await owner.call('createInvitation', request)).text, made.text)
    assert.deepEqual(await api.plane.database.rows('select 1 from mail_outbox'), [])
    const body = { token: url.split('/').at(-1), password: TEST_PASSWORD }
    assert.equal((await api.nobody.call('acceptInvitation', { body })).status, 201)
    const [row] = await api.plane.database.rows<{ verified: Date | null }>(
      `select email_verified_at as verified from users where email = 'guest@example.com'`,
    )
    assert.equal(row?.verified, null)
    await api.plane.database.rows(`update idempotency_keys set secret_expires_at = now()`)
    const late = await owner.call('createInvitation', request)
    assert.deepEqual([late.status, late.body.code], [409, 'idempotency_secret_expired'])
    await api.stop()
  })
})
