import assert from 'node:assert/strict'
import { Registry } from 'prom-client'
import { silentLog } from '../../../runtime/log/log.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../../testkit/identity-provider.ts'
import { IdentityProvider } from './identity-provider.ts'

describe('asking an identity provider', () => {
  let real: TestIdentityProvider
  before(async () => {
    real = await startIdentityProvider()
  })
  after(() => real.stop())

  /** Ours, by a clock that is so many seconds off. */
  const provider = (aheadSeconds = 0) => {
    const clock = { ahead: aheadSeconds * 1000 }
    const registry = new Registry()
    const { issuer, clientId, clientSecret } = real
    const config = {
      mode: 'oidc' as const,
      issuer,
      introspectionUrl: undefined,
      clientId,
      clientSecret,
      audience: clientId,
      caFile: undefined,
      operators: [],
    }
    const ours = new IdentityProvider({ config, log: silentLog, registry, now: () => Date.now() + clock.ahead })
    return { clock, registry, identify: (token: string) => ours.identify(token, token) }
  }

  it('believes what it was told for half a minute and no longer, whatever became of the token', async () => {
    const { clock, registry, identify } = provider()
    const token = await real.mint({ subject: 'ada' })
    assert.equal((await identify(token))?.subject, 'ada')
    await real.revoke(token)
    clock.ahead = 29_000
    assert.equal((await identify(token))?.subject, 'ada')
    clock.ahead = 30_000
    assert.equal(await identify(token), undefined)
    const asked = await registry.getSingleMetricAsString('svc_oidc_introspections_total')
    assert.match(asked, /outcome="good"\} 1$/m)
    assert.match(asked, /outcome="refused"\} 1$/m)
  })

  it('believes nothing beyond the end that the token has, by its own clock', async () => {
    const { clock, identify } = provider()
    const token = await real.mint({ seconds: 20 })
    assert.ok(await identify(token))
    const before = real.asked()
    clock.ahead = 18_000
    assert.ok(await identify(token))
    assert.equal(real.asked(), before)
    clock.ahead = 20_000
    await identify(token)
    assert.equal(real.asked(), before + 1)
  })

  for (const [ahead, good] of [
    [-3600, true], // the provider says when a token ends: a slow clock of ours asks for longer, never beyond what it is told
    [5, true],
    [25, true],
    [45, false],
  ] as const)
    it(`${good ? 'works' : 'refuses'} with a clock that is ${ahead} s off and a token that lives for 10 s`, async () => {
      const token = await real.mint({ seconds: 10 })
      const { identify } = provider(ahead)
      assert.equal((await identify(token)) !== undefined, good)
    })

  it('asks about each token by its own key', async () => {
    const { identify } = provider()
    const [one, other] = [await real.mint({ subject: 'one' }), await real.mint({ subject: 'other' })]
    const found = await Promise.all([identify(one), identify(other), identify('junk')])
    assert.deepEqual(
      found.map(each => each?.subject),
      ['one', 'other', undefined],
    )
  })
})
