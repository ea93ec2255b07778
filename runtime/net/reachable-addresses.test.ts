import assert from 'node:assert/strict'
import { createServer, get } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isReachable, type Networks, reachableLookup } from './reachable-addresses.ts'

const networks = (...texts: readonly string[]): Networks => texts.map(text => ipaddr.parseCIDR(text))
const PRIVATE = networks('10.0.0.0/8', '127.0.0.0/8', '::1/128', 'fd00::/8')
const EVERYTHING = networks('0.0.0.0/0', '::/0')

describe('an address that a call may go to', () => {
  for (const address of ['1.1.1.1', '93.184.216.34', '::ffff:1.1.1.1', '2606:4700:4700::1111', '2a00:1450::1'])
    it(`is ${address}`, () => assert.equal(isReachable(address, []), true))

  for (const [address, why] of [
    ['127.0.0.1', 'this machine'],
    ['127.1.2.3', 'this machine'],
    ['0.0.0.0', 'this machine, to some'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'of a carrier'],
    ['192.0.0.1', 'reserved'],
    ['192.0.2.1', 'for documents'],
    ['198.18.0.1', 'for benchmarks'],
    ['224.0.0.1', 'to many'],
    ['255.255.255.255', 'to all'],
    ['240.0.0.1', 'reserved'],
    ['::', 'none'],
    ['::1', 'this machine'],
    ['::127.0.0.1', 'an IPv4 one'],
    ['::ffff:127.0.0.1', 'an IPv4 one'],
    ['::ffff:7f00:1', 'an IPv4 one'],
    ['64:ff9b::7f00:1', 'translated to an IPv4 one'],
    ['64:ff9b:1::7f00:1', 'translated to an IPv4 one'],
    ['2002:7f00:1::', '6to4'],
    ['2001::1', 'Teredo'],
    ['2001:db8::1', 'for documents'],
    ['fc00::1', 'private'],
    ['fec0::1', 'private once'],
    ['ff02::1', 'to many'],
    ['4000::1', 'not given out'],
    ['127.0.0.1.nip.io', 'a name'],
    ['', 'nothing'],
  ] as const)
    it(`is not ${address}: ${why}`, () => assert.equal(isReachable(address, []), false))

  it('is one of a network that is allowed, however it is written', () => {
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '127.0.0.1', '::1', 'fd12::1'])
      assert.equal(isReachable(address, PRIVATE), true, address)
    for (const address of ['172.16.0.1', '192.168.1.1', 'fc00::1']) assert.equal(isReachable(address, PRIVATE), false)
  })

  for (const address of [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '169.254.0.1',
    'fe80::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
  ])
    it(`is never ${address}, where a cloud tells secrets, whatever is allowed`, () => {
      assert.equal(isReachable(address, EVERYTHING), false)
      assert.equal(isReachable(address, []), false)
    })
})

describe('a name that a call may go to', () => {
  const found = (lookup: LookupFunction, options = { all: true }): Promise<unknown> =>
    new Promise((resolve, reject) =>
      lookup('login.example.com', options, (error, address) => (error === null ? resolve(address) : reject(error))),
    )

  it('has reachable addresses alone: one that is not spoils it', async () => {
    const lookup = (...addresses: readonly string[]) => reachableLookup([], async () => addresses)
    assert.deepEqual(await found(lookup('1.1.1.1', '2606:4700::1')), [
      { address: '1.1.1.1', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ])
    assert.equal(await found(lookup('1.1.1.1'), { all: false }), '1.1.1.1')
    for (const addresses of [['127.0.0.1'], ['1.1.1.1', '10.0.0.1'], ['1.1.1.1', '::ffff:169.254.169.254'], []])
      await assert.rejects(found(lookup(...addresses)), { code: 'UNREACHABLE_ADDRESS' })
    await assert.rejects(
      found(reachableLookup([], () => Promise.reject(new Error('no name server')))),
      /no name server/,
    )
  })

  it('is judged by the very answer that is connected to: one that changes its mind leads nowhere else', async () => {
    const server = createServer((_request, response) => response.end('inside'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const asked: string[] = []
    /** The first answer is allowed, and all after it are not. */
    const rebinding = async (name: string) => {
      asked.push(name)
      return asked.length === 1 ? ['127.0.0.1'] : ['127.0.0.2']
    }
    const lookup = reachableLookup(networks('127.0.0.1/32'), rebinding)
    const call = (): Promise<string> =>
      new Promise((resolve, reject) => {
        get({ host: 'login.example.com', port, lookup, agent: false }, response => {
          response.resume().on('end', () => resolve(`${response.statusCode}`))
        }).on('error', reject)
      })
    try {
      assert.equal(await call(), '200')
      assert.deepEqual(asked, ['login.example.com'])
      await assert.rejects(call(), { code: 'UNREACHABLE_ADDRESS' })
    } finally {
      server.close()
      server.closeAllConnections()
    }
  })
})
