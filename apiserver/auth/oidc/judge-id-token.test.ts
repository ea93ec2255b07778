import assert from 'node:assert/strict'
import { judgeIdToken } from './judge-id-token.ts'

const NOW = new Date('2026-11-28T12:00:00Z')
const SECONDS = NOW.getTime() / 1000

describe('the claims of an ID token', () => {
  const judge = (claims: object) => judgeIdToken({ sub: 'ada', ...claims }, NOW)

  for (const [what, claims, expected] of [
    ['nothing but a subject', {}, {}],
    ['a name', { name: 'Ada Lovelace', preferred_username: 'ada' }, { name: 'Ada Lovelace' }],
    ['a name that cannot be kept', { name: 'a\u0000', preferred_username: 'al' }, { name: 'al' }],
    ['a mail address alone', { email: 'ada@example.com' }, { name: 'ada@example.com' }],
    [
      'a subject that reads like an actor of ours',
      { sub: 'user:usr_1' },
      { subject: 'user:usr_1', name: 'user:usr_1' },
    ],
    ['when they proved who they are', { auth_time: SECONDS - 5 }, { authenticatedAt: new Date(NOW.getTime() - 5000) }],
    ['a time that is none', { auth_time: 'now' }, {}],
    ['a time out of this world', { auth_time: 1e15 }, {}],
    ['an end', { session_expiry: SECONDS + 60 }, { endsAt: new Date(NOW.getTime() + 60_000) }],
  ] as const)
    it(`tell ${what}`, () =>
      assert.deepEqual(judge(claims), {
        subject: 'ada',
        name: 'ada',
        authenticatedAt: undefined,
        endsAt: undefined,
        ...expected,
      }))

  for (const [why, claims] of [
    ['no subject that can be used', { sub: undefined }],
    ['no subject that can be used', { sub: '' }],
    ['no subject that can be used', { sub: 7 }],
    ['no subject that can be used', { sub: 'x'.repeat(256) }],
    ['no subject that can be used', { sub: 'a\nb' }],
    ['no subject that can be used', { sub: '\ud800' }],
    ['a session that is over', { session_expiry: SECONDS }],
    ['an end of the session that is none', { session_expiry: '1800000000' }],
    ['an end of the session that is none', { session_expiry: Number.POSITIVE_INFINITY }],
    ['an end of the session that is none', { session_expiry: 1e15 }],
  ] as const)
    it(`vouch for nobody with ${JSON.stringify(claims)}: ${why}`, () => assert.equal(judge(claims), why))
})
