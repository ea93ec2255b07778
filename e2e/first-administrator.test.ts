/**
 * How the one person of a fresh box gets from its welcome to a session of their own, and what its settings change about that
 * later: the administrator whom they name, where letters go, when guessing ends, and the key that seals.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { hash } from '@node-rs/argon2'
import { ApiClient, type ApiRequest, type OperationId } from '../testkit/api-client.ts'
import { linkAndCode } from '../testkit/login-world.ts'
import { type MailRelay, startMailRelay, testAuthority } from '../testkit/mail-servers.ts'
import { codeBefore, codeOf } from '../testkit/second-factor.ts'
import { noteSecrets } from '../testkit/secrets-of-tests.ts'
import { fromAnywhere } from '../testkit/sign-in.ts'
import { BoxProcess } from './box-process.ts'

const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }
const GRACE = { email: 'grace@example.com', password: 'seven wet stones at the pier' }
const LINUS = { email: 'linus@example.com', password: 'nine dry leaves on the roof' }
/** Ada’s: what the settings say, what she says then, and what they say later. */
const CONFIGURED = 'eleven red boats in the fog'
const OWN = 'two grey cats at the gate'
const LATER = 'six green hills in the rain'
const RELAY_TOKEN = 'canary-of-the-mail-relay'
const ORG = { org: 'ada' }

const hashOf = (password: string): Promise<string> =>
  hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 })

describe('the first administrator of a single box', function () {
  this.timeout(120_000)
  let box: BoxProcess
  let relay: MailRelay
  let nobody: ApiClient
  let ada: ApiClient
  let grace: ApiClient
  /** The secret of Grace's app. */
  let app = ''
  before(async () => {
    noteSecrets(RELAY_TOKEN)
    const authority = testAuthority()
    relay = await startMailRelay({ identity: authority.identity(), token: RELAY_TOKEN })
    box = await BoxProcess.start({
      environment: {
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
        SERVICE_CONSOLE_URL: 'https://console.example.com',
        SERVICE_MAIL_WEBHOOK_URL: relay.url,
        SERVICE_MAIL_WEBHOOK_TOKEN: RELAY_TOKEN,
        SERVICE_MAIL_CA_FILE: authority.file,
        SERVICE_LOGIN_MAX_FAILURES: '3',
      },
    })
    nobody = new ApiClient(box.baseUrl)
  })
  after(async () => {
    await box.remove()
    await relay.stop()
  })

  const shown = (): string | undefined => /Setup token +(\S+)/.exec(box.output)?.[1]
  /** A call that must have this status, from an address of its own. */
  const must = async <Id extends OperationId>(
    status: number,
    who: ApiClient,
    operationId: Id,
    request: ApiRequest = {},
  ) => {
    const answer = await who.call(operationId, { ...request, headers: fromAnywhere() })
    assert.equal(answer.status, status, `${operationId}: ${answer.text}`)
    return answer.body
  }
  const session = ({ token }: { readonly token: string }): ApiClient => new ApiClient(box.baseUrl, token)
  const setUp = (status: number, token: string | undefined, email = ADA.email) =>
    must(status, nobody, 'setUp', { body: { setup_token: token, email, password: ADA.password } })
  const signIn = (status: number, email: string, password: string, more: object = {}) =>
    must(status, nobody, 'signIn', { body: { email, password, ...more } })
  const restart = async (environment: Readonly<Record<string, string>> = {}): Promise<void> => {
    await box.stop()
    await box.start(environment)
  }

  it('is whom the settings name, made with the token that the latest start showed, and signs in by mail address and password from then on', async () => {
    const first = shown()
    assert.match(first ?? '', /^svc_setup_/)
    await restart({ SERVICE_ADMIN_EMAIL: ADA.email })
    const latest = shown()
    assert.notEqual(latest, first)
    assert.equal((await setUp(401, first)).code, 'invalid_setup_token')
    assert.equal((await setUp(401, latest, 'eve@example.com')).code, 'invalid_setup_token')
    ada = session(await setUp(201, latest))
    await must(200, ada, 'putOrganization', { params: ORG, body: { name: 'Ada’s' } })
    const signedIn = session(await signIn(200, ADA.email, ADA.password))
    // Scripts go on as before.
    await box.api().expect(200, 'GET', '/v1/organizations')
    await setUp(409, latest)
    await restart()
    assert.equal(shown(), undefined)
    await must(200, signedIn, 'listOrganizations')
  })

  it('invites by the webhook, and signs in by a letter of it', async () => {
    for (const { email, password } of [GRACE, LINUS]) {
      const made = await must(201, ada, 'createInvitation', { params: ORG, body: { email, role: 'viewer' } })
      assert.equal('invite_url' in made, false)
      const letter = await relay.letter(({ to }) => to === email)
      const token = /svc_inv_[0-9A-Za-z]{43}/.exec(letter.text)?.[0]
      await must(201, nobody, 'acceptInvitation', { body: { token, password } })
    }
    await must(202, nobody, 'requestMagicLink', { body: { email: GRACE.email } })
    const { token } = linkAndCode(
      await relay.letter(({ to, text }) => to === GRACE.email && text.includes('/auth/magic')),
    )
    const signedIn = await must(200, nobody, 'verifyMagicLink', { body: { token } })
    assert.equal(signedIn.session.method, 'email_link')
    grace = session(signedIn)
    assert.ok(relay.requests.every(({ headers }) => headers['idempotency-key'] !== undefined))
  })

  it('sees who was locked after so many failures as the settings say, and nobody tries more than twenty times from an address', async () => {
    const before = session(await signIn(200, LINUS.email, LINUS.password))
    for (let n = 0; n < 3; n++) await signIn(401, LINUS.email, `wrong ${n}`)
    assert.equal((await signIn(401, LINUS.email, LINUS.password)).code, 'invalid_credentials')
    await must(200, before, 'getSession')
    const { events } = await must(200, ada, 'listLoginEvents', { query: { limit: 200 } })
    const locked = events.filter(({ type }) => type === 'locked')
    assert.deepEqual(
      locked.map(({ email }) => email),
      [LINUS.email],
    )

    const request = { headers: { 'X-Forwarded-For': '198.51.100.7' } }
    const guesses = []
    for (let n = 0; n < 22; n++)
      guesses.push(
        await nobody.call('signIn', { body: { email: `nobody${n}@example.com`, password: OWN }, ...request }),
      )
    const refused = guesses.filter(({ status }) => status === 429)
    assert.deepEqual(
      refused.map(({ body }) => body.code),
      ['sign_in_rate_limited', 'sign_in_rate_limited'],
    )
    assert.ok(refused.every(({ headers }) => Number(headers.get('retry-after')) > 0))
    await signIn(200, ADA.email, ADA.password)
  })

  it('gets the password of the settings, once for each change of them; what was sealed goes over to another master key', async () => {
    const { secret } = await must(200, grace, 'beginTotp', { body: { password: GRACE.password } })
    app = secret
    await must(200, grace, 'confirmTotp', { body: { code: await codeBefore(app) } })
    const file = join(box.home, 'secrets', 'master.key')
    const old = readFileSync(file, 'utf8').trim()
    const fresh = { SERVICE_KMS_MASTER_KEY: randomBytes(32).toString('base64') }
    noteSecrets(fresh.SERVICE_KMS_MASTER_KEY)
    const named = { SERVICE_ADMIN_EMAIL: ADA.email, SERVICE_ADMIN_PASSWORD_HASH: await hashOf(CONFIGURED) }
    await restart({ ...named, ...fresh, SERVICE_KMS_PREVIOUS_MASTER_KEYS: old })
    await must(401, ada, 'getSession')
    await signIn(401, ADA.email, ADA.password)
    ada = session(await signIn(200, ADA.email, CONFIGURED))
    await must(204, ada, 'changePassword', { body: { current_password: CONFIGURED, new_password: OWN } })

    // The same again, and the new key alone.
    rmSync(file)
    await restart({ ...named, ...fresh })
    await must(200, ada, 'getSession')
    await signIn(401, ADA.email, CONFIGURED)
    await signIn(200, ADA.email, OWN)
    assert.equal((await signIn(401, GRACE.email, GRACE.password)).code, 'mfa_required')
    await signIn(200, GRACE.email, GRACE.password, { totp_code: codeOf(app) })

    await restart({ ...named, ...fresh, SERVICE_ADMIN_PASSWORD_HASH: await hashOf(LATER) })
    await must(401, ada, 'getSession')
    await signIn(401, ADA.email, OWN)
    await signIn(200, ADA.email, LATER)
  })

  it('shuts somebody out by make disable-user: their session ends, and none begins', async () => {
    const { code, output } = await box.run('disable-user.ts', { EMAIL: GRACE.email })
    assert.equal(code, 0, output)
    await must(401, grace, 'getSession')
    assert.equal((await signIn(401, GRACE.email, GRACE.password)).code, 'invalid_credentials')
  })

  it('leaves neither token nor password in the home’s files', async () => {
    await box.stop()
    const secrets = [ADA.password, GRACE.password, LINUS.password, CONFIGURED, OWN, LATER, app, 'svc_setup_']
    for (const file of readdirSync(box.home, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue
      const text = readFileSync(join(file.parentPath, file.name), 'latin1')
      for (const secret of secrets) assert.ok(!text.includes(secret), `${file.name} holds ${secret}`)
    }
  })
})
