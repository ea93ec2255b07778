import assert from 'node:assert/strict'
import { isEmailAddress, normalEmail } from './email-address.ts'

describe('a mail address', () => {
  for (const address of ['a@b', 'Ada.Lovelace+x@example.co.uk', `${'a'.repeat(64)}@example.com`, "o'neil@example.com"])
    it(`can be ${address}`, () => assert.ok(isEmailAddress(address)))

  for (const address of [
    '',
    'ada',
    '@example.com',
    'ada@',
    'ada@@example.com',
    'ada @example.com',
    'ada@example.com ',
    'ada@example.com\n',
    'ada\r\nBcc: x@y@example.com',
    '"ada"@example.com',
    '"a b"@example.com',
    'ada@exam ple.com',
    'ada@-example.com',
    'ada@example..com',
    'ada@example.com.',
    `ada@${'a'.repeat(64)}.com`,
    `ada@${'a.'.repeat(130)}com`,
    `${'a'.repeat(65)}@example.com`,
    'ada@exämple.com',
    'ád@example.com',
    '\u212A@example.com', // KELVIN SIGN, which lower-cases to k
    'ı@example.com',
    'ada@example.com,eve@example.com',
    '<ada@example.com>',
  ])
    it(`is not ${JSON.stringify(address)}`, () => assert.equal(isEmailAddress(address), false))

  it('has one spelling, of which nothing but ASCII letters is folded', () => {
    assert.equal(normalEmail('Ada@Example.COM'), 'ada@example.com')
    assert.equal(normalEmail('\u212A@x'), '\u212A@x')
  })
})
