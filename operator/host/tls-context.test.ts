import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { type AuthorityState, issueClient, issueServer, newAuthority, trusted } from './kubernetes/authority.ts'
import { type TlsMaterial, tlsContext } from './tls-context.ts'

const NOW = new Date()
const NAME = 'main-1.ns.svc'

const of = (authority: AuthorityState): TlsMaterial => ({ ca: trusted(authority) })

describe('what TLS sessions share', () => {
  const ours = newAuthority(NOW)
  const others = Array.from({ length: 4 }, () => newAuthority(NOW))

  it('is the same for the same certificates and keys, and for no others', () => {
    const { certificate: cert, key } = issueClient(ours, NOW)
    const known = { ...of(ours), cert, key }
    assert.equal(tlsContext(of(ours)), tlsContext({ ...of(ours) }))
    assert.equal(tlsContext(known), tlsContext({ ...known }))
    const different = new Set([of(ours), known, of(others[0]!)].map(tlsContext))
    assert.equal(different.size, 3)
  })

  it('is kept of the latest four, by their last use', () => {
    const first = tlsContext(of(ours))
    for (const other of others.slice(0, 3)) tlsContext(of(other))
    assert.equal(tlsContext(of(ours)), first)
    const second = tlsContext(of(others[0]!))
    for (const other of others.slice(1)) tlsContext(of(other))
    assert.notEqual(tlsContext(of(ours)), first)
    assert.equal(tlsContext(of(others[0]!)) === second, false)
  })

  it('trusts a server of its own authority only', async () => {
    const { certificate: cert, key } = issueServer(ours, [NAME], NOW)
    const server = createServer({ cert, key }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const shake = async (authority: AuthorityState): Promise<string> => {
      const secureContext = tlsContext(of(authority))
      const socket = connect({ host: '127.0.0.1', port, servername: NAME, secureContext })
      try {
        await once(socket, 'secureConnect')
        return 'trusted'
      } catch (error) {
        return (error as { code: string }).code
      } finally {
        socket.destroy()
      }
    }
    try {
      assert.deepEqual(
        [await shake(ours), await shake(others[0]!), await shake(ours)],
        ['trusted', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'trusted'],
      )
    } finally {
      server.close()
    }
  })
})
