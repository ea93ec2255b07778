/** Nobody is called who is not configured: no source names a host of somebody’s, so that there is nobody to send anything to (ASVS 14.2.3). */
import assert from 'node:assert/strict'
import { productSources } from '../testkit/product-sources.ts'

const HOST = /\b(?:https?|wss?|smtps?|ldaps?|tcp|udp):\/\/(?:[^/@\s'"`]*@)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)/gi
/** Examples (RFC 2606), and this machine. */
const NOBODY = /(?:^|\.)example\.(?:com|net|org)$|^127\./

const hostsIn = (text: string): readonly string[] =>
  [...text.matchAll(HOST)].map(([, host = '']) => host.toLowerCase()).filter(host => !NOBODY.test(host))

describe('the product', () => {
  it('names nobody to call: addresses of others come from its settings alone', () => {
    const sources = productSources().filter(({ file }) => !file.endsWith('.contract.ts'))
    const found = sources.flatMap(({ file, text }) => hostsIn(text).map(host => `${file}: ${host}`))
    assert.deepEqual(found, [])
    assert.ok(sources.length > 500, 'too few were read')
  })

  for (const [text, found] of [
    [`fetch('https://telemetry.acme.io/v1/events')`, ['telemetry.acme.io']],
    ['`https://user:word@Collector.acme.io:443`', ['collector.acme.io']],
    [`'https://db.example.com/v1', 'http://127.0.0.1:80'`, []],
  ] as const)
    it(`finds ${found.length === 0 ? 'nobody' : found.join()} in ${text}`, () => {
      assert.deepEqual(hostsIn(text), found)
    })
})
