/** A leader that sleeps within its session with a server, and wakes when somebody else leads. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { StandinServer } from '../../../testkit/kubernetes/postgres-standin.ts'
import { applyPasswords } from '../apply-roles.ts'
import { issueClient, issueServer, newAuthority, trusted } from './authority.ts'
import { settleServer } from './server-session.ts'

const HOST = 'main-1.ns.svc'
const CREDENTIALS = {
  app: { username: 'app', password: 'first' },
  ops: { username: 'svc_ops', password: 'second' },
} as Parameters<typeof applyPasswords>[1]

describe('a leader that wakes too late', () => {
  const now = new Date()
  const state = newAuthority(now)
  const [client, ca] = [issueClient(state, now), trusted(state)]
  const served = async (): Promise<{
    server: StandinServer
    address: Parameters<typeof settleServer>[0]
    end: () => void
  }> => {
    const files = { ...issueServer(state, [HOST], now), authorities: ca, settings: '' }
    const server = await StandinServer.start(async () => files)
    const door = createServer(socket => server.serve(socket)).listen(0, '127.0.0.1')
    await once(door, 'listening')
    const { port } = door.address() as AddressInfo
    const tls = { ca, servername: HOST, cert: client.certificate, key: client.key }
    return { server, address: { host: '127.0.0.1', port, tls }, end: () => void door.close() }
  }
  /** Leads for so many questions, and no longer. */
  const leadsFor = (questions: number): (() => void) => {
    let left = questions
    return () => {
      if (left-- <= 0) throw new Error('This process does not lead')
    }
  }

  it('sets no password any more, however far it got', async () => {
    for (const [questions, set] of [
      [0, []],
      [1, ['app']],
      [2, ['app', 'svc_ops']],
    ] as const) {
      const { server, address, end } = await served()
      const work = applyPasswords(address, CREDENTIALS, leadsFor(questions))
      await (questions < 2 ? assert.rejects(work, /does not lead/) : work)
      assert.deepEqual([...server.verifiers.keys()], set)
      end()
    }
  })

  it('sets no limit of connections', async () => {
    const { server, address, end } = await served()
    const wanted = { connectionLimit: 7, files: undefined }
    await assert.rejects(settleServer(address, wanted, false, leadsFor(0)), /does not lead/)
    assert.equal(server.connectionLimits.size, 0)
    await settleServer(address, wanted, false, leadsFor(1))
    assert.equal(server.connectionLimits.get('app'), 7)
    end()
  })
})
