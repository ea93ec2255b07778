import assert from 'node:assert/strict'
import { parseNetworks } from '../config/trusted-networks.ts'
import { clientAddress, limitKey } from './client-address.ts'

describe('clientAddress', () => {
  const cases: { why: string; peer?: string; forwarded?: string; trusted?: string[]; expected: string }[] = [
    { why: 'the peer without proxies', peer: '203.0.113.7', expected: '203.0.113.7' },
    { why: 'a mapped IPv4 peer', peer: '::ffff:203.0.113.7', expected: '203.0.113.7' },
    { why: 'a mapped IPv4 peer in hexadecimal', peer: '::ffff:cb00:7107', expected: '203.0.113.7' },
    { why: 'no peer', expected: 'unknown' },
    {
      why: 'a forged header without trusted proxies',
      peer: '203.0.113.7',
      forwarded: '198.51.100.1',
      expected: '203.0.113.7',
    },
    {
      why: 'the header of a trusted proxy',
      peer: '10.0.0.1',
      forwarded: '198.51.100.1',
      trusted: ['10.0.0.0/8'],
      expected: '198.51.100.1',
    },
    {
      why: 'the hop nearest to the trusted ones, not the left-most forged one',
      peer: '10.0.0.1',
      forwarded: '1.1.1.1, 198.51.100.1, 10.0.0.9',
      trusted: ['10.0.0.0/8'],
      expected: '198.51.100.1',
    },
    {
      why: 'a stranger that is no trusted proxy',
      peer: '203.0.113.7',
      forwarded: '198.51.100.1',
      trusted: ['10.0.0.0/8'],
      expected: '203.0.113.7',
    },
    {
      why: 'a hop that is no address',
      peer: '10.0.0.1',
      forwarded: 'nonsense',
      trusted: ['10.0.0.1'],
      expected: '10.0.0.1',
    },
    {
      why: 'ports and brackets',
      peer: '::1',
      forwarded: '[2001:db8::5]:4711',
      trusted: ['::1'],
      expected: '2001:db8::5',
    },
    {
      why: 'a mapped proxy address',
      peer: '::ffff:10.0.0.1',
      forwarded: '198.51.100.1:99',
      trusted: ['10.0.0.0/8'],
      expected: '198.51.100.1',
    },
  ]
  for (const { why, peer, forwarded, trusted, expected } of cases)
    it(`takes ${why}`, () => {
      assert.equal(clientAddress(peer, forwarded, parseNetworks(trusted ?? [])), expected)
    })

  it('counts IPv6 clients by their /64 and IPv4 clients one by one', () => {
    assert.equal(limitKey('2001:db8:1:2:3:4:5:6'), limitKey('2001:db8:1:2::1'))
    assert.notEqual(limitKey('2001:db8:1:2::1'), limitKey('2001:db8:1:3::1'))
    assert.notEqual(limitKey('203.0.113.7'), limitKey('203.0.113.8'))
  })

  it('refuses a network that is none', () => {
    assert.throws(() => parseNetworks(['10.0.0.0/99']))
    assert.throws(() => parseNetworks(['proxy']))
  })
})
