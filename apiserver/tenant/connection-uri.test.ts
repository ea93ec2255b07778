import assert from 'node:assert/strict'
import { connectionUri } from './connection-uri.ts'

describe('connectionUri', () => {
  it('survives every character in a password and an IPv6 host', () => {
    const password = `a/b@c:d?e#f%g&h=i "j'`
    const uri = new URL(
      connectionUri({ host: '2001:db8::7', port: 20001, sslmode: 'require' }, { username: 'app', password }),
    )
    assert.equal(decodeURIComponent(uri.password), password)
    assert.deepEqual(
      [uri.username, uri.hostname, uri.port, uri.pathname, uri.searchParams.get('sslmode')],
      ['app', '[2001:db8::7]', '20001', '/app', 'require'],
    )
  })
})
