/**
 * Everything by which people, their programs and agents are known, once through a running single box that sends real mail: by
 * HTTP alone, as a console and a terminal do it. Who may not, and what races, is asked of the API server (apiserver/test).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { DEVICE_GRANT } from '../apiserver/contract/device-flow.ts'
import type { SignedIn } from '../apiserver/contract/login/people.ts'
import { ApiClient, type ApiRequest, type OperationId } from '../testkit/api-client.ts'
import { blocksBelow } from '../testkit/documented-blocks.ts'
import { type Ended, ended } from '../testkit/kubernetes/kubectl.ts'
import { linkAndCode } from '../testkit/login-world.ts'
import { type MailReceiver, startSmtpServer, testAuthority } from '../testkit/mail-servers.ts'
import { codeBefore, codeOf } from '../testkit/second-factor.ts'
import { assertNoSecrets, noteSecrets } from '../testkit/secrets-of-tests.ts'
import { fromAnywhere } from '../testkit/sign-in.ts'
import { BoxProcess } from './box-process.ts'
import { controlPlaneOf } from './single-box-world.ts'

interface LoginEvents {
  readonly events: readonly { readonly type: string }[]
  readonly next_cursor: number | null
}

const CONSOLE = 'https://console.example.com'
const MAIL_ACCOUNT = { user: 'service', password: 'canary-of-the-mail-account' }
const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }
const GRACE = { email: 'grace@example.com', password: 'seven wet stones at the pier' }
const LINUS = { email: 'linus@example.com', password: 'nine dry leaves on the roof' }
const ORG = { org: 'acme' }

/** Somebody with a credential, or without. A session is followed as a console does: each answer may replace its token. */
class Person {
  #client: ApiClient
  /** How many tokens the session had. */
  tokens = 1

  constructor(url: string, token?: string) {
    this.#client = new ApiClient(url, token)
  }

  /** A call that must have this status; each comes from an address of its own, so that none meets the limit of another. */
  async must<Id extends OperationId>(status: number, operationId: Id, request: ApiRequest = {}) {
    const answer = await this.#client.call(operationId, { ...request, headers: fromAnywhere() })
    assert.equal(answer.status, status, `${operationId}: ${answer.text}`)
    const next = answer.headers.get('svc-session-token')
    if (next !== null) {
      this.#client = new ApiClient(this.#client.baseUrl, next)
      this.tokens++
    }
    return answer.body
  }
}

describe('the login of a single box', function () {
  this.timeout(120_000)
  let box: BoxProcess
  let mail: MailReceiver
  let nobody: Person
  let ada: Person
  let grace: Person

  before(async () => {
    const authority = testAuthority()
    mail = await startSmtpServer({ tls: 'starttls', identity: authority.identity(), account: MAIL_ACCOUNT })
    noteSecrets(MAIL_ACCOUNT)
    box = await BoxProcess.start({
      environment: {
        SERVICE_LOG_LEVEL: 'debug',
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
        SERVICE_CONSOLE_URL: CONSOLE,
        SERVICE_SESSION_ROTATE_SECONDS: '1',
        SERVICE_DEFAULT_SMTP_HOST: '127.0.0.1',
        SERVICE_DEFAULT_SMTP_PORT: String(mail.port),
        SERVICE_DEFAULT_SMTP_USER: MAIL_ACCOUNT.user,
        SERVICE_DEFAULT_SMTP_PASSWORD: MAIL_ACCOUNT.password,
        SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: 'service@example.com',
        SERVICE_MAIL_CA_FILE: authority.file,
      },
    })
    nobody = new Person(box.baseUrl)
  })
  after(async () => {
    await box.remove()
    await mail.stop()
  })

  const seen = new Set<unknown>()
  /** The next letter to somebody, and the token in its link. */
  const letterTo = async ({ email }: { readonly email: string }) => {
    const letter = await mail.letter(each => each.to === email && !seen.has(each))
    seen.add(letter)
    const token = /https:\/\/console\.example\.com\/\S*(svc_(?:inv|rst|mgl)_[0-9A-Za-z]{43})/.exec(letter.text)?.[1]
    assert.ok(token, letter.text)
    return { letter, token }
  }
  const session = ({ token }: SignedIn): Person => new Person(box.baseUrl, token)
  const signIn = async (who: { readonly email: string; readonly password: string }, more: object = {}) =>
    session(await nobody.must(200, 'signIn', { body: { ...who, ...more } }))
  const ownerUrl = (): string => controlPlaneOf(box).owner

  it('begins with the setup token of the welcome', async () => {
    assert.equal((await nobody.must(200, 'getSetup')).setup_required, true)
    const setupToken = /Setup token +(\S+)/.exec(box.output)?.[1]
    ada = session(await nobody.must(201, 'setUp', { body: { setup_token: setupToken, ...ADA, name: 'Ada' } }))
    assert.equal((await nobody.must(200, 'getSetup')).setup_required, false)
    await ada.must(200, 'putOrganization', { params: ORG, body: { name: 'Acme' } })
    const body = { region: 'local', postgres_major: 17 }
    await ada.must(200, 'putProject', { params: { ...ORG, project: 'shop' }, body })
  })

  it('has keys for programs of an organization, until they are revoked', async () => {
    const made = await ada.must(201, 'createApiKey', { params: ORG, body: { name: 'ci', scopes: ['deploy'] } })
    const ci = new Person(box.baseUrl, made.secret)
    assert.equal((await ci.must(200, 'listProjects', { params: ORG })).projects.length, 1)
    assert.equal((await ci.must(403, 'listApiKeys', { params: ORG })).code, 'insufficient_scope')
    assert.equal((await ada.must(200, 'listApiKeys', { params: ORG })).items.length, 1)
    await ada.must(200, 'revokeApiKey', { params: { ...ORG, api_key: made.api_key_id } })
    await ci.must(401, 'listProjects', { params: ORG })
  })

  it('invites people by mail', async () => {
    for (const [who, role] of [
      [GRACE, 'developer'],
      [LINUS, 'viewer'],
    ] as const) {
      const made = await ada.must(201, 'createInvitation', { params: ORG, body: { email: who.email, role } })
      assert.equal('invite_url' in made, false)
      const { token } = await letterTo(who)
      const offered = await nobody.must(200, 'previewInvitation', { body: { token } })
      assert.deepEqual([offered.email, offered.role, offered.account_exists], [who.email, role, false])
      await nobody.must(201, 'acceptInvitation', { body: { token, password: who.password } })
      await nobody.must(404, 'acceptInvitation', { body: { token, password: who.password } })
    }
    const eve = { email: 'eve@example.com' }
    const made = await ada.must(201, 'createInvitation', { params: ORG, body: { ...eve, role: 'viewer' } })
    const { token } = await letterTo(eve)
    assert.equal((await ada.must(200, 'listInvitations', { params: ORG })).invitations.length, 1)
    await ada.must(204, 'revokeInvitation', { params: { ...ORG, invitation: made.invitation_id } })
    assert.equal((await nobody.must(404, 'previewInvitation', { body: { token } })).code, 'invitation_not_found')
    const { members } = await ada.must(200, 'listMembers', { params: ORG })
    assert.deepEqual(members.map(({ role }) => role).toSorted(), ['developer', 'owner', 'viewer'])
    grace = await signIn(GRACE)
    assert.deepEqual((await grace.must(200, 'getSession')).organizations, [
      { organization_id: 'acme', name: 'Acme', role: 'developer' },
    ])
  })

  it('asks for a second factor once there is one, and takes recovery codes in its place', async () => {
    const { secret } = await grace.must(200, 'beginTotp', { body: { password: GRACE.password } })
    // Of the step before, so that the code of now is not spent yet.
    const enrolled = await grace.must(200, 'confirmTotp', { body: { code: await codeBefore(secret) } })
    const [first = '', second = ''] = enrolled.recovery_codes
    assert.equal((await grace.must(200, 'getMfa')).recovery_codes_remaining, 10)
    const firstStep = async (): Promise<unknown> => {
      const asked = (await nobody.must(401, 'signIn', { body: GRACE })) as unknown as Record<string, unknown>
      assert.equal(asked['code'], 'mfa_required')
      noteSecrets({ mfa_token: asked['mfa_token'] })
      return asked['mfa_token']
    }
    const step = (proof: object, token: unknown) => ({ body: { mfa_token: token, ...proof } })
    const app = await nobody.must(200, 'signInMfa', step({ totp_code: codeOf(secret) }, await firstStep()))
    assert.equal(app.user.mfa_enabled, true)
    const paper = await nobody.must(200, 'signInMfa', step({ recovery_code: first }, await firstStep()))
    assert.equal(paper.recovery_codes_remaining, 9)
    await nobody.must(401, 'signInMfa', step({ recovery_code: first }, await firstStep()))
    const proof = { password: GRACE.password, totp_code: codeOf(secret, 1) }
    const renewed = await grace.must(200, 'renewRecoveryCodes', { body: proof })
    await nobody.must(401, 'signIn', { body: { ...GRACE, recovery_code: second } })
    const last = { password: GRACE.password, recovery_code: renewed.recovery_codes[0] }
    await grace.must(204, 'removeTotp', { body: last })
    assert.equal((await grace.must(200, 'getMfa')).totp.enabled, false)
  })

  it('replaces the token of a session while it is used', async () => {
    const { tokens } = grace
    while (grace.tokens < tokens + 2) {
      await grace.must(200, 'getSession')
      await sleep(50)
    }
  })

  it('lists sessions and ends them: one, the others, its own, and all others with a change of the password', async () => {
    const others = [await signIn(GRACE), await signIn(GRACE), await signIn(GRACE)] as const
    const idOf = async (who: Person): Promise<string> => (await who.must(200, 'getSession')).session.session_id
    const { sessions } = await grace.must(200, 'listSessions')
    assert.ok(sessions.length >= 4, JSON.stringify(sessions))
    assert.deepEqual(
      sessions.filter(({ current }) => current).map(({ session_id }) => session_id),
      [await idOf(grace)],
    )
    await grace.must(204, 'revokeSession', { params: { session: await idOf(others[0]) } })
    await others[0].must(401, 'getSession')
    await others[1].must(204, 'signOut')
    await others[1].must(401, 'getSession')
    assert.ok((await grace.must(200, 'revokeOtherSessions')).revoked >= 1)
    await others[2].must(401, 'getSession')
    const other = await signIn(GRACE)
    const next = 'eleven red boats in the fog'
    await grace.must(204, 'changePassword', { body: { current_password: GRACE.password, new_password: next } })
    await other.must(401, 'getSession')
    await grace.must(200, 'getSession')
    await nobody.must(401, 'signIn', { body: GRACE })
    GRACE.password = next
    await signIn(GRACE)
  })

  it('signs in by mail, with the link or with the code', async () => {
    for (const [who, way] of [
      [GRACE, 'link'],
      [LINUS, 'code'],
    ] as const) {
      await nobody.must(202, 'requestMagicLink', { body: { email: who.email } })
      const { letter, token } = await letterTo(who)
      const { code } = linkAndCode(letter)
      assert.equal((await nobody.must(200, 'previewMagicLink', { body: { token } })).creates_account, false)
      const body = way === 'link' ? { token } : { email: who.email, code }
      const signedIn = await nobody.must(200, 'verifyMagicLink', { body })
      assert.deepEqual([signedIn.session.method, signedIn.user.email], ['email_link', who.email])
      await nobody.must(401, 'verifyMagicLink', { body })
      await session(signedIn).must(200, 'getSession')
    }
  })

  it('sets a new password with a link of a letter, or of an administrator', async () => {
    const before = await signIn(LINUS)
    await nobody.must(202, 'requestPasswordReset', { body: { email: LINUS.email } })
    const { token } = await letterTo(LINUS)
    const issued = await ada.must(201, 'issuePasswordReset', {
      body: { email: GRACE.email, admin_password: ADA.password },
    })
    assert.match(issued.reset_url, /^https:\/\/console\.example\.com\/reset-password\/svc_rst_/)
    for (const [who, link, next] of [
      [LINUS, token, 'two grey cats at the gate'],
      [GRACE, issued.reset_url.split('/').at(-1), 'six green hills in the rain'],
    ] as const) {
      const shown = await nobody.must(200, 'previewPasswordReset', { body: { token: link } })
      assert.equal(shown.email_hint, `${who.email[0]}***@example.com`)
      await nobody.must(204, 'completePasswordReset', { body: { token: link, new_password: next } })
      await nobody.must(401, 'signIn', { body: who })
      who.password = next
    }
    await before.must(401, 'getSession')
    await signIn(LINUS)
    grace = await signIn(GRACE)
  })

  it('lets an agent in by the device flow, and tells what it did, a restart later too', async () => {
    const ask = () =>
      nobody.must(200, 'requestDeviceCode', { body: { client_name: 'coder', scopes: ['org:acme:read'] } })
    const poll = (code: string) => ({ body: { grant_type: DEVICE_GRANT, device_code: code } })
    const denied = await ask()
    assert.equal((await nobody.must(400, 'pollDeviceToken', poll(denied.device_code))).code, 'authorization_pending')
    await grace.must(204, 'denyDevice', { body: { user_code: denied.user_code } })
    assert.equal((await nobody.must(400, 'pollDeviceToken', poll(denied.device_code))).code, 'access_denied')

    const { user_code, device_code } = await ask()
    const wanted = await grace.must(200, 'getDeviceRequest', { params: { user_code } })
    assert.deepEqual(wanted.requested_scopes, ['org:acme:read'])
    await grace.must(200, 'approveDevice', { body: { user_code, scopes: wanted.requested_scopes } })
    const made = await nobody.must(200, 'pollDeviceToken', poll(device_code))
    await nobody.must(400, 'pollDeviceToken', poll(device_code))

    const agent = new Person(box.baseUrl, made.access_token)
    await agent.must(200, 'getProject', { params: { ...ORG, project: 'shop' } })
    const body = { region: 'local', postgres_major: 17 }
    await agent.must(403, 'putProject', { params: { ...ORG, project: 'other' }, body })
    await box.stop()
    await box.start()
    const { events } = await grace.must(200, 'listTokenEvents', { params: { token: made.token_id } })
    assert.deepEqual(
      events.map(({ method, path, status }) => `${method} ${path} ${status}`),
      ['PUT /v1/organizations/acme/projects/other 403', 'GET /v1/organizations/acme/projects/shop 200'],
    )
    await agent.must(200, 'revokeToken', { params: { token: made.token_id } })
    await agent.must(401, 'listOrganizations')
  })

  it('has recorded all that, for operators', async () => {
    const types = new Set<string>()
    for (let after: number | null = 0; after !== null; ) {
      const page: LoginEvents = await ada.must(200, 'listLoginEvents', { query: { after, limit: 200 } })
      for (const { type } of page.events) types.add(type)
      after = page.next_cursor
    }
    for (const type of [
      ...['setup_completed', 'create_user', 'sign_in', 'sign_in_failed', 'sign_out', 'session_revoked'],
      ...['mfa_enrolled', 'mfa_removed', 'recovery_code_used', 'recovery_codes_renewed', 'password_changed'],
      ...['magic_link_requested', 'magic_link_used', 'password_reset_requested', 'password_reset'],
      ...['device_requested', 'device_denied', 'create_token', 'revoke_token'],
    ])
      assert.ok(types.has(type), `no ${type} among ${[...types].join(' ')}`)
  })

  /** The command that the documents have for a box. */
  const verifyAudit = (): Promise<Ended> => {
    const script = blocksBelow('docs/operations.md', 'The audit log').at(-1) ?? ''
    assert.match(script, /verify-audit/)
    const cwd = join(import.meta.dirname, '..')
    return ended('bash', ['-euo', 'pipefail', '-c', script], { cwd, env: { SERVICE_HOME: box.home } })
  }

  it('vouches for its audit log, and names an event that somebody changed', async () => {
    const before = await ada.must(200, 'verifyAuditEvents', { params: ORG })
    assert.deepEqual([before.verified, before.broken], [true, null])
    const sound = await verifyAudit()
    assert.equal(sound.code, 0, sound.stdout)
    assert.match(sound.stdout, new RegExp(`^ok +acme: ${before.events} events, head \\d+ ${before.head?.hash}$`, 'm'))
    assert.match(sound.stdout, /^ok +accounts: /m)

    const intruder = new pg.Client(ownerUrl())
    await intruder.connect()
    await intruder.query('alter table audit_events disable trigger audit_events_append_only')
    await intruder.query(`update audit_events set actor = 'user:nobody' where organization_id = 'acme' and id = 2`)
    await intruder.query('alter table audit_events enable always trigger audit_events_append_only')
    await intruder.end()
    const changed = await ada.must(200, 'verifyAuditEvents', { params: ORG })
    assert.deepEqual([changed.verified, changed.broken], [false, { id: 2, problem: 'changed' }])
    const found = await verifyAudit()
    assert.equal(found.code, 1, found.stdout)
    assert.match(found.stdout, /^BAD +acme: event 2 is changed; the 1 before it are as they were written$/m)
  })

  it('has written none of its secrets into its log or its rows', async () => {
    const client = new pg.Client(ownerUrl())
    await client.connect()
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(relname) as name from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`,
    )
    const rows: string[] = []
    for (const { name } of tables)
      for (const { text } of (await client.query<{ text: string }>(`select r::text as text from ${name} r`)).rows)
        rows.push(`${name}: ${text}`)
    await client.end()
    await box.stop()
    const log = readFileSync(join(box.home, 'control-plane.log'), 'utf8').split('\n')
    assert.ok(log.length > 100 && rows.length > 100)
    assertNoSecrets({ 'the box’ log': log, 'the box’ rows': rows })
  })
})
