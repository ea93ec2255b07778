import assert from 'node:assert/strict'
import { judgeIntrospection } from './judge-introspection.ts'

const EXPECTED = { issuer: 'https://id.example.com', audience: 'svc', skewSeconds: 30, operators: [] }
const NOW = 1_800_000_000
const GOOD = { active: true, iss: EXPECTED.issuer, aud: 'svc', sub: 'ada', exp: NOW + 600, token_type: 'Bearer' }

describe('an answer about a token', () => {
  const judge = (more: object) => judgeIntrospection({ ...GOOD, ...more }, EXPECTED, NOW)

  for (const [what, more, name = 'ada'] of [
    ['as it should be', {}],
    ['without an issuer', { iss: undefined }],
    ['for several audiences', { aud: ['other', 'svc'] }],
    ['without a type', { token_type: undefined }],
    ['that says when it began, by a clock ahead', { nbf: NOW + 29 }],
    ['that just expired, by a clock behind', { exp: NOW - 29 }],
    ['that never expires', { exp: undefined }],
    ['with a name', { username: 'Ada L.' }, 'Ada L.'],
    ['with several names', { username: 'al', name: 'Ada Lovelace' }, 'Ada Lovelace'],
    ['with a name that cannot be kept', { name: 'a\u0000b', preferred_username: 'al' }, 'al'],
  ] as const)
    it(`is believed ${what}`, () => {
      const expiresAt = 'exp' in more ? more.exp : GOOD.exp
      assert.deepEqual(judge(more), { issuer: EXPECTED.issuer, subject: 'ada', name, isOperator: false, expiresAt })
    })

  for (const [why, more] of [
    ['not active', { active: false }],
    ['not active', { active: 'true' }],
    ['not active', { active: 1 }],
    ['another issuer', { iss: 'https://id.example.com/' }],
    ['another issuer', { iss: null }],
    ['another audience', { aud: 'other' }],
    ['another audience', { aud: undefined }],
    ['another audience', { aud: ['svcx', 'sv'] }],
    ['another audience', { aud: [['svc']] }],
    ['no access token', { token_type: 'refresh_token' }],
    ['no access token', { token_type: 'DPoP' }],
    ['no access token', { typ: 'Refresh' }],
    ['no access token', { typ: 'ID' }],
    ['bound to a key', { cnf: { jkt: 'x' } }],
    ['expired', { exp: NOW - 30 }],
    ['an expiry that is none', { exp: '1800000600' }],
    ['not valid yet', { nbf: NOW + 31 }],
    ['no subject that can be used', { sub: undefined }],
    ['no subject that can be used', { sub: '' }],
    ['no subject that can be used', { sub: 7 }],
    ['no subject that can be used', { sub: 'x'.repeat(256) }],
    ['no subject that can be used', { sub: 'a\u0000' }],
    ['no subject that can be used', { sub: '\ud800' }],
    ['no subject that can be used', { sub: 'user:usr_1' }],
    ['no subject that can be used', { sub: 'System:ttl' }],
    ['no subject that can be used', { sub: 'sso:ada' }],
    ['no subject that can be used', { sub: 'apikey:key_1' }],
    ['no subject that can be used', { sub: 'kubernetes:kubectl' }],
  ] as const)
    it(`is not believed with ${JSON.stringify(more)}: ${why}`, () => assert.equal(judge(more), why))

  const operators = [
    { name: 'groups', value: 'admins' },
    { name: 'sub', value: 'auth0|ada' },
    { name: 'realm_access.roles', value: 'operator' },
    { name: 'https://example.com/roles', value: 'operator' },
  ]
  for (const [isOperator, more] of [
    [true, { groups: ['users', 'admins'] }],
    [true, { groups: 'admins' }],
    [true, { sub: 'auth0|ada' }],
    [true, { realm_access: { roles: ['operator'] } }],
    [true, { 'realm_access.roles': 'operator' }],
    [true, { 'https://example.com/roles': ['operator'] }],
    [false, {}],
    [false, { groups: 'admins users' }],
    [false, { groups: ['Admins'] }],
    [false, { groups: [['admins']] }],
    [false, { groups: { admins: true } }],
    [false, { roles: ['admins'] }],
    [false, { realm_access: 'operator' }],
    [false, { realm_access: null }],
  ] as const)
    it(`is of ${isOperator ? 'an' : 'no'} operator with ${JSON.stringify(more)}`, () => {
      const judged = judgeIntrospection({ ...GOOD, ...more }, { ...EXPECTED, operators }, NOW)
      assert.equal(typeof judged === 'string' ? judged : judged.isOperator, isOperator)
    })
})
