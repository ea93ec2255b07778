import assert from 'node:assert/strict'
import { hostAndPort, listenAddress } from './listen-address.ts'
import { ConfigError } from './parse-env.ts'

describe('an address to listen at', () => {
  for (const [text, expected] of [
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['0.0.0.0:0', { host: '0.0.0.0', port: 0 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
    ['localhost:9464', { host: 'localhost', port: 9464 }],
  ] as const)
    it(`${text} is one`, () => assert.deepEqual(listenAddress('SERVICE_LISTEN', hostAndPort.parse(text)), expected))

  for (const text of ['', '8080', ':8080', '127.0.0.1', '127.0.0.1:', '::1:8080', '127.0.0.1:123456'])
    it(`"${text}" is none`, () => assert.equal(hostAndPort.safeParse(text).success, false))

  it('names the variable whose port there is not', () =>
    assert.throws(
      () => listenAddress('SERVICE_METRICS_LISTEN', '127.0.0.1:65536'),
      new ConfigError('Cannot use SERVICE_METRICS_LISTEN: port 65536 is above 65535'),
    ))
})
