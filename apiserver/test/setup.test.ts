import assert from 'node:assert/strict'
import { hash } from '@node-rs/argon2'
import { isCurrent } from '../../lib/credentials/argon2-hash.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { eventually } from '../../testkit/dispatch-world.ts'
import { REPLICAS } from '../../testkit/full.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { prepareFirstAdministrator } from '../commands/login/first-administrator.ts'

const PASSWORD = 'seven wet stones at the pier'
const TRUST = { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' }

describe('the first administrator', () => {
  let api: TestApiServer
  afterEach(() => api.stop())

  const setUp = (token: string | undefined, email: string, client = api.nobody, password = PASSWORD) =>
    client.call('setUp', { body: { setup_token: token, email, password }, headers: fromAnywhere() })
  const required = async () => (await api.nobody.call('getSetup')).body.setup_required

  it('is made with the token that the log says, once, and is signed in', async () => {
    api = await startTestApiServer({ operator: false, environment: TRUST })
    const token = api.server.setupToken ?? ''
    assert.match(token, /^svc_setup_[0-9A-Za-z]{43}$/)
    assert.ok(api.logged.some(line => line.includes(token)))
    // An operator without a password, as the single box makes, is no administrator.
    await api.makeCaller('local-operator', { isOperator: true })
    assert.equal(await required(), true)
    assert.equal((await setUp(`${token.slice(0, -1)}_`, 'ada@example.com')).body.code, 'invalid_setup_token')
    const weak = await setUp(token, 'ada@example.com', api.nobody, 'ada@example.com')
    assert.deepEqual([weak.body.code, weak.body.errors?.[0]?.pointer], ['password_not_allowed', '#/password'])
    const made = await setUp(token, 'Ada@example.com')
    assert.equal(made.status, 201, made.text)
    const { body } = await new ApiClient(api.url, made.body.token).call('getSession')
    assert.deepEqual([body.user.email, body.user.is_operator, body.session.method], ['ada@example.com', true, 'setup'])
    const again = await setUp(token, 'eve@example.com')
    assert.deepEqual([again.status, again.body.code, await required()], [409, 'setup_complete', false])
    const kept = await api.plane.database.rows<{ text: string }>('select e::text as text from account_events e')
    assert.ok(kept.some(({ text }) => text.includes('setup_completed')))
    for (const { text } of kept) assert.ok(!text.includes(token.slice(20)))
  })

  it('is one, of many setups at once on two replicas, with the token of the last start alone', async () => {
    api = await startTestApiServer({ operator: false, replicas: REPLICAS, environment: TRUST })
    const replica = new ApiClient(await api.startReplica())
    assert.equal((await setUp(api.server.setupToken, 'ada@example.com')).body.code, 'invalid_setup_token')
    const line = api.logged.findLast(each => each.includes('svc_setup_')) ?? ''
    const token = /svc_setup_[0-9A-Za-z]{43}/.exec(line)?.[0]
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => setUp(token, `a${i}@example.com`, i % 2 === 0 ? api.nobody : replica)),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    const others = answers.filter(({ status }) => status !== 201).map(({ body }) => body.code)
    assert.ok(
      others.every(code => code === 'setup_complete'),
      others.join(),
    )
    const row = await api.plane.database.row<{ n: number }>('select count(*)::int as n from users where is_operator')
    assert.equal(row?.n, 1)
  })

  it('is whoever has the configured address, which may be an account already', async () => {
    api = await startTestApiServer({
      operator: false,
      environment: { ...TRUST, SERVICE_ADMIN_EMAIL: 'Boss@example.com' },
    })
    const token = api.server.setupToken
    assert.equal((await setUp(token, 'eve@example.com')).body.code, 'invalid_setup_token')
    const boss = await api.makeCaller('Boss')
    await api.plane.database.rows('update users set email = $2 where user_id = $1', [boss.userId, 'boss@example.com'])
    const old = await signInAs(api, Object.assign(boss, { email: 'boss@example.com' }))
    const made = await setUp(token, 'boss@example.com')
    assert.deepEqual([made.status, made.body.user.user_id, made.body.user.is_operator], [201, boss.userId, true])
    assert.equal((await old.client.call('getSession')).status, 401)
  })

  it('is tried ten times in five minutes from one address', async () => {
    api = await startTestApiServer({ operator: false })
    const body = { setup_token: 'svc_setup_junk', email: 'ada@example.com', password: PASSWORD }
    const answers = await Promise.all(Array.from({ length: 12 }, () => api.nobody.call('setUp', { body })))
    assert.equal(answers.filter(({ status }) => status === 429).length, 2)
  })

  it('of the configuration may have a hash of another cost, of which a start warns until a sign-in has renewed it', async () => {
    const passwordHash = await hash(PASSWORD, { memoryCost: 65_536, timeCost: 3, parallelism: 4 })
    const environment = { ...TRUST, SERVICE_ADMIN_EMAIL: 'root@example.com', SERVICE_ADMIN_PASSWORD_HASH: passwordHash }
    api = await startTestApiServer({ operator: false, environment })
    const warnings = api.logged.filter(line => line.includes('SERVICE_ADMIN_PASSWORD_HASH'))
    assert.equal(warnings.length, 1)
    assert.match(warnings[0]!, /"level":"warn".*node apiserver\/hash-password\.ts/)
    const body = { email: 'root@example.com', password: PASSWORD }
    assert.equal((await api.nobody.call('signIn', { body, headers: fromAnywhere() })).status, 200)
    const stored = () => api.plane.database.row<{ hash: string }>('select hash from passwords')
    await eventually(stored, row => isCurrent(row?.hash ?? ''), 'the hash is renewed')
  })

  it('of the configuration has its password, which is reset once for each change of the hash', async () => {
    const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
    const [first, second] = [await hash(PASSWORD, cost), await hash(TEST_PASSWORD, cost)]
    const environment = { ...TRUST, SERVICE_ADMIN_EMAIL: 'root@example.com', SERVICE_ADMIN_PASSWORD_HASH: first }
    api = await startTestApiServer({ operator: false, environment })
    assert.deepEqual([api.server.setupToken, await required()], [undefined, false])
    const signIn = (password: string) =>
      api.nobody.call('signIn', { body: { email: 'root@example.com', password }, headers: fromAnywhere() })
    const session = await signIn(PASSWORD)
    assert.equal(session.body.user.is_operator, true)
    const own = 'twelve dry stones on the hill'
    const change = { current_password: PASSWORD, new_password: own }
    const client = new ApiClient(api.url, session.body.token)
    assert.equal((await client.call('changePassword', { body: change, headers: fromAnywhere() })).status, 204)
    const boot = (passwordHash: string) =>
      prepareFirstAdministrator(api.plane.database, { email: 'root@example.com', passwordHash })
    await Promise.all([boot(first), boot(first)])
    assert.equal((await signIn(own)).status, 200, 'the same hash resets nothing')
    await Promise.all([boot(second), boot(second), boot(second)])
    assert.deepEqual([(await signIn(own)).status, (await signIn(TEST_PASSWORD)).status], [401, 200])
    const events = await api.plane.database.rows<{ type: string }>(
      `select type from account_events where metadata ->> 'source' = 'configuration' order by id`,
    )
    assert.deepEqual(
      events.map(({ type }) => type),
      ['setup_completed', 'password_reset'],
    )
    for (const line of api.logged) assert.ok(!line.includes(first) && !line.includes(second))
  })
})
