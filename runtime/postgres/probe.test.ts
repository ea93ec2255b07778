import assert from 'node:assert/strict'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { testFolder } from '../../testkit/server-files.ts'
import { type ProbeAnswer, probeServer } from './probe.ts'

/** An error message of the protocol. */
const refusal = (code: string): Buffer => {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const SASL = Buffer.from('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0', 'latin1')

const CASES: readonly (readonly [name: string, answer: (socket: Socket) => void, expected: ProbeAnswer])[] = [
  ['asks for a password', socket => socket.write(SASL), 'accepting'],
  ['refuses the role', socket => socket.write(refusal('28000')), 'accepting'],
  ['has no session left', socket => socket.write(refusal('53300')), 'busy'],
  ['is starting up', socket => socket.write(refusal('57P03')), 'starting'],
  [
    'sends its answer in two pieces',
    socket => {
      socket.write(refusal('57P03').subarray(0, 12))
      setTimeout(() => socket.write(refusal('57P03').subarray(12)), 5)
    },
    'starting',
  ],
  ['hangs up', socket => socket.end(), 'silent'],
  ['breaks off in the middle', socket => void (socket.write('R'), socket.destroy()), 'silent'],
  ['says nothing', () => undefined, 'silent'],
]

describe('a probe', () => {
  const folder = testFolder()
  let server: Server
  let sockets: Socket[] = []
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })

  for (const [name, answer, expected] of CASES)
    it(`calls a server ${expected} that ${name}`, async () => {
      server = createServer(socket => {
        sockets = [...sockets, socket]
        socket.on('error', () => undefined)
        socket.once('data', () => answer(socket))
      })
      await new Promise<void>(resolve => server.listen(join(folder, '.s.PGSQL.5432'), resolve))
      const login = { role: 'svc_ops', database: 'app' }
      assert.equal(await probeServer({ socketFolder: folder, port: 5432 }, login, 150), expected)
    })

  it('calls a server silent that is not there', async () => {
    server = createServer().listen(join(folder, '.s.PGSQL.5433'))
    const login = { role: 'svc_ops', database: 'app' }
    assert.equal(await probeServer({ socketFolder: folder, port: 1 }, login, 1000), 'silent')
  })
})
