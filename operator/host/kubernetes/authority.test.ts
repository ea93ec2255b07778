import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import {
  type AuthorityState,
  acceptedAuthority,
  advanceAuthority,
  continues,
  isGoodClient,
  isGoodServer,
  issueClient,
  issueServer,
  newAuthority,
  trusted,
} from './authority.ts'

const NOW = new Date('2026-11-27T12:00:00Z')
const after = (days: number): Date => new Date(NOW.getTime() + days * 86_400_000)
const HOSTS = ['main-1.ns.svc', 'main-1']

/** Whether a certificate is signed by one of the authorities of a bundle. */
const isTrusted = (bundle: string, certificate: string): boolean =>
  bundle
    .split(/(?<=-----END CERTIFICATE-----\n)/)
    .filter(pem => pem.trim() !== '')
    .some(pem => new X509Certificate(certificate).verify(new X509Certificate(pem).publicKey))

describe('the authority of environments', () => {
  const state = newAuthority(NOW)

  it('signs servers for 90 days and renews them a month before', () => {
    const server = issueServer(state, HOSTS, NOW)
    assert.equal(new X509Certificate(server.certificate).validTo, 'Feb 25 12:00:00 2027 GMT')
    assert.equal(isGoodServer(state, server, HOSTS, NOW), true)
    assert.equal(isGoodServer(state, server, HOSTS, after(59)), true)
    assert.equal(isGoodServer(state, server, HOSTS, after(61)), false)
    assert.equal(isGoodServer(state, server, [...HOSTS, 'other'], NOW), false)
    const addressed = issueServer(state, [...HOSTS, '192.0.2.7'], NOW)
    assert.equal(isGoodServer(state, addressed, [...HOSTS, '192.0.2.7'], NOW), true)
    assert.equal(isGoodServer(state, addressed, [...HOSTS, '192.0.2.8'], NOW), false)
    assert.equal(isGoodServer(state, { ...server, key: issueServer(state, HOSTS, NOW).key }, HOSTS, NOW), false)
    assert.equal(isGoodServer(state, { certificate: 'x', key: 'y' }, HOSTS, NOW), false)
    assert.equal(isGoodServer(newAuthority(NOW), server, HOSTS, NOW), false)
  })

  it('signs the operator for clients only, by the name that servers know', () => {
    const client = issueClient(state, NOW)
    const certificate = new X509Certificate(client.certificate)
    assert.equal(certificate.subject, 'CN=svc-operator')
    assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2'])
    assert.equal(isGoodClient(state, client, NOW), true)
    assert.equal(isGoodClient(state, client, after(16)), false)
    assert.equal(isGoodClient(newAuthority(NOW), client, NOW), false)
  })

  it('lets its successor be trusted before it signs, and is trusted itself until nothing of it is in use', () => {
    let current = state
    let servers: { certificate: string; until: number }[] = []
    let validTo = 0
    for (let day = 0; day < 2 * 3650; day++) {
      const now = after(day)
      const yesterday = current
      current = advanceAuthority(current, now)
      // Between two changes nothing new can be wrong but the end of the signing certificate.
      const hasChanged = current !== yesterday || day % 30 === 0
      if (hasChanged) validTo = Date.parse(new X509Certificate(current.signing.certificate).validTo)
      assert.ok(validTo > now.getTime() + 86_400_000 * 90)
      if (!hasChanged) continue
      // What any client or server read within the last week still trusts what is presented today.
      const before = trusted(current)
      servers = servers.filter(({ until }) => until > day)
      if (day % 30 === 0) servers.push({ certificate: issueServer(current, HOSTS, now).certificate, until: day + 90 })
      for (const { certificate } of servers) assert.ok(isTrusted(before, certificate), `day ${day}`)
    }
  })

  it('signs by the successor only after everybody had a week to trust it', () => {
    const late = after(3650 - 364)
    const announced = advanceAuthority(state, late)
    assert.notEqual(announced.successor, undefined)
    assert.equal(announced.signing.certificate, state.signing.certificate)
    const early = new Date(late.getTime() + 6 * 86_400_000)
    assert.equal(advanceAuthority(announced, early), announced)
    const changed = advanceAuthority(announced, new Date(late.getTime() + 7 * 86_400_000))
    assert.equal(changed.signing.certificate, announced.successor?.certificate)
    assert.ok(isTrusted(trusted(announced), issueServer(changed, HOSTS, late).certificate))
  })

  it('takes a state for its own that shares an authority with it, or that an admin accepted since', () => {
    const [first, second] = [newAuthority(NOW), newAuthority(NOW)]
    const overlapping = { signing: second.signing, former: { certificate: first.signing.certificate, until: '' } }
    const accepted = acceptedAuthority(NOW)
    const rows: [AuthorityState, AuthorityState, boolean][] = [
      [first, first, true],
      [first, overlapping, true],
      [overlapping, first, true],
      [first, second, false],
      [first, accepted, true],
      [accepted, first, false],
      [accepted, acceptedAuthority(new Date(NOW.getTime() + 1)), true],
      [accepted, acceptedAuthority(new Date(NOW.getTime() - 1)), false],
    ]
    for (const [index, [before, state, expected]] of rows.entries())
      assert.equal(continues(before, state), expected, `row ${index}`)
    const successor = { ...second.signing, from: NOW.toISOString() }
    assert.equal(advanceAuthority({ ...accepted, successor }, NOW).acceptedAt, NOW.toISOString())
  })
})
