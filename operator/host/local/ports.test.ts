import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { freePorts } from '../../../testkit/free-port.ts'
import { isPortFree, Ports } from './ports.ts'

describe('ports', () => {
  it('are given once each, however many ask at once, until none is left', async () => {
    const first = await freePorts(10)
    const ports = new Ports({ first, last: first + 9 }, '127.0.0.1', 'seed')
    const given = await Promise.allSettled(Array.from({ length: 12 }, (_, index) => ports.give(`owner ${index}`)))
    const got = given.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
    assert.equal(new Set(got).size, got.length)
    assert.ok(got.length <= 10 && got.length >= 8, 'a few may belong to other programs')
    assert.ok(got.every(port => port >= first && port <= first + 9))
  })

  it('of other programs are skipped', async () => {
    const first = await freePorts()
    const listener = createServer()
    await new Promise<void>(resolve => listener.listen(first, '127.0.0.1', resolve))
    try {
      assert.equal(await isPortFree('127.0.0.1', first), false)
      await assert.rejects(new Ports({ first, last: first }, '127.0.0.1', 'a').give('x'), /all of/)
    } finally {
      await new Promise(resolve => listener.close(resolve))
    }
    assert.equal(await new Ports({ first, last: first }, '127.0.0.1', 'a').give('x'), first)
  })

  it('of an address that is not this machine’s are not tried one after the other: the address is at fault', async () => {
    const ports = new Ports({ first: 21_000, last: 30_999 }, '203.0.113.1', 'a')
    await assert.rejects(ports.give('x'), { code: 'EADDRNOTAVAIL' })
    await assert.rejects(isPortFree('203.0.113.1', 21_000), { code: 'EADDRNOTAVAIL' })
  })

  it('given earlier are not given again, and only their owner gives them back', async () => {
    const first = await freePorts()
    const ports = new Ports({ first, last: first }, '127.0.0.1', 'a')
    ports.keep(first, 'owner')
    await assert.rejects(ports.give('other'), /all of/)
    ports.giveBack(first, 'other')
    await assert.rejects(ports.give('other'), /all of/)
    ports.giveBack(first, 'owner')
    assert.equal(await ports.give('other'), first)
  })

  it('begin at different places for different homes', async () => {
    const range = { first: 20_000, last: 29_999 }
    const given = await Promise.all(['/a', '/b', '/c', '/d'].map(home => new Ports(range, '127.0.0.1', home).give('x')))
    assert.equal(new Set(given).size, 4)
  })
})
