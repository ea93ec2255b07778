import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createSealer, SealError } from '../../lib/credentials/seal.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { rotateKeys } from '../../testkit/rotate-keys.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { configureSso, SSO_CLIENT, SSO_ENVIRONMENT, SsoBrowser, signInBySso } from '../../testkit/sso.ts'

const NEXT = 'svc-session-token'

describe('the master key, changed while servers serve', function () {
  this.timeout(120_000)
  let api: TestApiServer
  let provider: TestIdentityProvider
  const fresh = randomBytes(32)
  let old: Buffer
  /** Knows the new key and seals with the old one; and the other way about. */
  let [first, second]: [string, string] = ['', '']
  before(async () => {
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    api = await startTestApiServer({ operator: false, environment: SSO_ENVIRONMENT })
    old = api.masterKey
    first = await api.startReplica({ masterKey: old, previousMasterKeys: [fresh] })
    second = await api.startReplica({ masterKey: fresh, previousMasterKeys: [old] })
  })
  after(async () => {
    await api.stop()
    await provider.stop()
  })

  const rotate = (current: Buffer, previous: readonly Buffer[]) => rotateKeys(api.plane, current, previous)
  const sealed = () =>
    api.plane.database.rows<{ id: string; sealed: string }>(
      `select user_id as id, sealed_secret as sealed from second_factors union all
       select organization_id, sealed_secret from organization_sso union all
       select 'root', sealed from derivation_root union all select 'canary', sealed from seal_canary order by 1`,
    )
  /** Somebody whose second factor one of the servers sealed. */
  const enrolledAt = async (url: string) => {
    const caller = await api.makeCaller('Ada')
    const { secret } = await enrolTotp(await signInAs(api, caller, url))
    return async (at: string): Promise<number> => {
      const body = { email: caller.email, password: TEST_PASSWORD, totp_code: codeOf(secret) }
      return (await new ApiClient(at).call('signIn', { body, headers: fromAnywhere() })).status
    }
  }

  it('is no matter to sessions and repeated calls, whichever server answers with whichever key', async () => {
    const caller = await api.makeCaller('Bob')
    const session = await signInAs(api, caller, first)
    let { token } = session
    for (let round = 0; round < 4; round++) {
      await api.plane.database.rows(`update sessions set rotated_at = now() - interval '901 s' where id = $1`, [
        session.session.session_id,
      ])
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => new ApiClient([first, second][n % 2]!, token).call('listTokens')),
      )
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
      const next = new Set(answers.map(({ headers }) => headers.get(NEXT)).filter(each => each !== null))
      assert.equal(next.size, 1)
      token = [...next][0]!
    }
    const request = { body: { name: 'ci', ttl: '1h' as const }, key: 'make-ci' }
    const [made, again] = [
      await new ApiClient(first, caller.token).call('createToken', request),
      await new ApiClient(second, caller.token).call('createToken', request),
    ]
    assert.equal(made.status, 201, made.text)
    assert.deepEqual([again.text, again.headers.get('idempotency-replayed')], [made.text, 'true'])
  })

  it('is changed by the command, during sign-ins at both, and afterwards the old one opens nothing', async () => {
    const people = await Promise.all([first, second, first, second, first, second].map(enrolledAt))
    const owner = await api.makeCaller('owner', { isOperator: true })
    for (const org of ['acme', 'globex']) {
      const at = new ApiClient(org === 'acme' ? first : second, owner.token)
      assert.equal((await at.call('putOrganization', { params: { org }, body: { name: org } })).status, 200)
      await configureSso(at, org, provider, { default_role: 'viewer' })
    }
    const before = await sealed()
    const [done, ...during] = await Promise.all([
      rotate(fresh, [old]),
      ...people.slice(0, 4).map((signIn, n) => signIn([second, first, first, second][n]!)),
    ])
    assert.deepEqual(during, [200, 200, 200, 200])
    const { kid } = createSealer({ current: fresh })
    assert.equal(done.code, 0, done.stderr)
    // Three people's of the old key, one provider's, and the root of derived keys.
    assert.equal(done.stdout, `Wrapped 5 rows with master key ${kid}\n`)
    const after = await sealed()
    assert.equal(after.length, before.length)
    assert.ok(after.every(row => row.sealed.startsWith(`v1.${kid}.`)))
    assert.equal((await rotate(fresh, [])).stdout, `Wrapped 0 rows with master key ${kid}\n`)
    const alone = await api.startReplica({ masterKey: fresh })
    assert.equal(await people[4]!(alone), 200)
    assert.equal(await people[5]!(first), 200)
    for (const [url, org] of [
      [alone, 'acme'],
      [alone, 'globex'],
      [first, 'acme'],
    ] as const)
      await signInBySso({ url }, org, new SsoBrowser('ada'))
    await assert.rejects(api.startReplica({ masterKey: old }), SealError)
  })

  it('is refused by server and command when it is not the one, in a line, and nothing changes', async () => {
    const stranger = randomBytes(32)
    const before = await sealed()
    await assert.rejects(api.startReplica({ masterKey: stranger }), SealError)
    const { code, stdout, stderr } = await rotate(stranger, [])
    assert.deepEqual([code, stdout, stderr.trimEnd().split('\n').length], [1, '', 1])
    assert.ok(!stderr.includes(stranger.toString('base64')))
    assert.deepEqual(await sealed(), before)
  })
})
