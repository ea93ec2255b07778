import assert from 'node:assert/strict'
import { base32, matchTotp, newTotpSecret, otpauthUri, totpCode, totpStep } from './totp.ts'

describe('a time-based code', () => {
  const secret = base32(Buffer.from('12345678901234567890'))

  it('is that of RFC 6238, appendix B', () => {
    for (const [seconds, code] of [
      [59, '94287082'],
      [1111111109, '07081804'],
      [1111111111, '14050471'],
      [1234567890, '89005924'],
      [2000000000, '69279037'],
      [20000000000, '65353130'],
    ] as const)
      assert.equal(totpCode(secret, totpStep(seconds), 8), code)
  })

  it('is taken one step early or late, and no further', () => {
    const now = 1_800_000_000
    for (const [off, taken] of [
      [-2, false],
      [-1, true],
      [0, true],
      [1, true],
      [2, false],
    ] as const) {
      const step = totpStep(now) + off
      assert.equal(matchTotp(secret, totpCode(secret, step), now), taken ? step : undefined)
    }
  })

  it('is six ASCII digits and nothing else', () => {
    const code = totpCode(secret, totpStep(0))
    const wide = code.replaceAll(/\d/g, digit => String.fromCodePoint(0xff10 + Number(digit)))
    for (const text of [
      wide,
      `${code} `,
      `${code.slice(0, 3)} ${code.slice(3)}`,
      `${code}0`,
      code.slice(1),
      '',
      `${code}\n`,
    ])
      assert.equal(matchTotp(secret, text, 0), undefined, JSON.stringify(text))
  })

  it('has a secret of 160 bits in base32, which an app reads with whose it is', () => {
    assert.equal(base32(Buffer.from('foobar')), 'MZXW6YTBOI') // RFC 4648, section 10
    const drawn = newTotpSecret()
    assert.match(drawn, /^[A-Z2-7]{32}$/)
    const uri = new URL(otpauthUri('svc', 'ada+1@example.com', drawn))
    assert.deepEqual(
      [decodeURIComponent(uri.pathname), uri.searchParams.get('secret')],
      ['/svc:ada+1@example.com', drawn],
    )
  })
})
