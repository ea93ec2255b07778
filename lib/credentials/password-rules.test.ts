import assert from 'node:assert/strict'
import { COMMON_PASSWORDS } from './generated/common-passwords.ts'
import { contextWords, passwordFault } from './password-rules.ts'

describe('a new password', () => {
  const words = contextWords('ada.lovelace@engines.example', ['acme', 'Acme Works'])
  const cases: readonly (readonly [password: string, fault: string | undefined])[] = [
    ['correct horse battery staple', undefined],
    ['             ', undefined], // thirteen blanks: nothing is trimmed
    ['eleven char', 'too_short'],
    ['twelve chars', undefined],
    ['🔑'.repeat(11), 'too_short'], // 22 UTF-16 units, 11 characters
    ['🔑🗝️🔒🔓🔏🔐🚪🏠🧱🪟🛎️🧰', undefined],
    ['e\u0301'.repeat(6), undefined], // not normalized: it stays twelve
    [`x1${'9z'.repeat(511)}`, undefined],
    [`x12${'9z'.repeat(511)}`, 'too_long'],
    ['9'.repeat(100_000), 'too_long'],
    ['nul\u0000 in the middle', 'invalid_text'],
    ['half a pair \ud83d of it', 'invalid_text'],
    ['123456789012', 'common_password'],
    ['PasswordPassword', 'common_password'],
    ['ada.lovelace@engines.example', 'contains_context'],
    ['ada.lovelace1815', 'contains_context'],
    ['Lovelace-Acme-1', 'contains_context'],
    ['acme works 2026!', 'contains_context'],
    ['postgres-admin-1', 'contains_context'],
    ['acme is where my cats live', undefined],
    ['Svc+torn4do&lemonade', undefined],
  ]
  for (const [password, fault] of cases)
    it(`that is ${JSON.stringify(password.slice(0, 32))} (${password.length}) is ${fault ?? 'taken'}`, () => {
      assert.equal(passwordFault(password, words), fault)
    })

  it('is compared with thousands that were leaked often, each long enough to be asked for', () => {
    assert.ok(COMMON_PASSWORDS.size >= 3000, `${COMMON_PASSWORDS.size}`)
    for (const password of COMMON_PASSWORDS) {
      assert.ok(password.length >= 12 && password === password.toLowerCase(), password)
      assert.equal(passwordFault(password, []), 'common_password')
    }
  })
})
