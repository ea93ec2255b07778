import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { type NewToken, newAgentToken, newApiKey, newPersonalToken, tokenDigest, tokenKindOf } from './token.ts'

const EXPIRY = new Date('2026-11-28T09:30:59Z')

const DRAWS: readonly (readonly [kind: string, draw: () => NewToken, prefix: RegExp])[] = [
  ['personal', newPersonalToken, /^svc_pat_[0-9A-Za-z]{8}$/],
  ['api_key', newApiKey, /^svck_[0-9A-Za-z]{8}$/],
  [
    'agent',
    () => newAgentToken(['project:acme/shop:deploy'], EXPIRY),
    /^svc_agt_project\.acme\.shop\.deploy\.exp-20261128T0930Z$/,
  ],
]

for (const [kind, draw, shown] of DRAWS)
  describe(`tokens of the kind ${kind}`, () => {
    it('pass their own gate, are never drawn twice and show their first characters only', () => {
      const drawn = Array.from({ length: sized(300, 10_000) }, draw)
      assert.equal(new Set(drawn.map(each => each.token)).size, drawn.length)
      for (const { token, prefix, digest } of drawn) {
        assert.equal(tokenKindOf(token), kind)
        assert.match(prefix, shown)
        assert.ok(token.startsWith(prefix))
        assert.deepEqual(digest, tokenDigest(token))
        assert.match(token, /^[A-Za-z0-9\-._~+/]+=*$/, 'RFC 6750 b64token')
        assert.ok(token.length <= 512)
      }
    })

    it('use every character of the alphabet about equally often', () => {
      const counts = new Map<string, number>()
      const n = sized(2000, 20_000)
      for (let i = 0; i < n; i++)
        for (const char of draw().token.slice(-49, -6)) counts.set(char, (counts.get(char) ?? 0) + 1)
      assert.equal(counts.size, 62)
      const expected = (n * 43) / 62
      for (const [char, count] of counts)
        assert.ok(Math.abs(count / expected - 1) < 0.2, `${char} drawn ${count} times`)
    })

    it('fail the gate when any one character is changed, cut or added', () => {
      const { token } = draw()
      fc.assert(
        fc.property(
          fc.nat(token.length - 1),
          fc.constantFrom('a', 'Z', '0', '9', '_', '-', '.', ' ', '\n', '\u0000', 'é'),
          (at, char) => {
            const changed = token.slice(0, at) + char + token.slice(at + 1)
            assert.equal(tokenKindOf(changed), changed === token ? kind : undefined)
            assert.equal(tokenKindOf(token.slice(0, at)), undefined)
            assert.equal(tokenKindOf(token.slice(0, at) + char + token.slice(at)), undefined)
          },
        ),
        { numRuns: sized(300, 20_000) },
      )
    })
  })

describe('what an agent token tells its reader', () => {
  const long = (ids: number) =>
    `${['org', 'project', 'env'][ids - 1]}:${Array(ids).fill('a'.repeat(60)).join('/')}:read`
  const cases: readonly (readonly [scopes: readonly string[], expiresAt: Date | undefined, summary: string])[] = [
    [['read'], undefined, 'read.exp-never'],
    [['read'], EXPIRY, 'read.exp-20261128T0930Z'],
    [['project:acme/shop:deploy'], EXPIRY, 'project.acme.shop.deploy.exp-20261128T0930Z'],
    [['org:acme:read', 'env:acme/shop/pr-7:admin'], undefined, 'org.acme.read~env.acme.shop.pr-7.admin.exp-never'],
    [['org:acme:read', long(2), long(1), long(1)], undefined, 'org.acme.read~and-3-more.exp-never'],
    [[long(1)], EXPIRY, `org.${'a'.repeat(60)}.read.exp-20261128T0930Z`],
    [[long(3)], EXPIRY, 'env.read.exp-20261128T0930Z'],
    [[long(2), 'read'], EXPIRY, 'project.read~and-1-more.exp-20261128T0930Z'],
  ]
  for (const [scopes, expiresAt, summary] of cases)
    it(`is ${summary}`, () => {
      const { token, prefix } = newAgentToken(scopes, expiresAt)
      assert.equal(prefix, `svc_agt_${summary}`)
      assert.ok(summary.length <= 96)
      assert.equal(tokenKindOf(token), 'agent')
    })
})
