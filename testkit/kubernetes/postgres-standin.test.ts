/** The stand-in for Postgres, met with the very sessions that the operator opens. */
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { applyPasswords } from '../../operator/host/apply-roles.ts'
import { type Door, signInOverTcp } from '../../operator/host/sign-in.ts'
import { asSuperuser, type TlsAddress } from '../../operator/host/superuser-session.ts'
import { makeAuthority, makeClientIdentity, makeServerIdentity } from '../../runtime/tls/certificate.ts'
import { StandinServer } from './postgres-standin.ts'

const SERVERNAME = 'db.ns.svc'
const CREDENTIALS = {
  app: { username: 'app', password: 'right' },
  ops: { username: 'svc_ops', password: 'ours' },
}

describe('the stand-in for Postgres', () => {
  let standin: StandinServer
  let listener: Server
  let door: Door
  let addressOf: (name: string) => TlsAddress
  before(async () => {
    const now = new Date()
    const made = makeAuthority('test', 30, now)
    const authority = { certificate: new X509Certificate(made.certificate), key: createPrivateKey(made.key) }
    const server = makeServerIdentity(authority, [SERVERNAME], 30, now)
    standin = await StandinServer.start(() =>
      Promise.resolve({ ...server, authorities: made.certificate, settings: "svc.files = 'digest'\n" }),
    )
    listener = createServer(socket => standin.serve(socket)).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    const tls = { ca: made.certificate, servername: SERVERNAME }
    door = { host: '127.0.0.1', port, tls }
    addressOf = name => {
      const { certificate: cert, key } = makeClientIdentity(authority, name, 30, now)
      return { host: '127.0.0.1', port, tls: { ...tls, cert, key } }
    }
  })
  after(() => listener.close())

  it('knows a role once it was given a verifier, by that password alone', async () => {
    assert.equal((await signInOverTcp(door, CREDENTIALS.app)).result, 'refused')
    await applyPasswords(addressOf('svc-operator'), CREDENTIALS)
    assert.equal((await signInOverTcp(door, CREDENTIALS.app)).result, 'ok')
    assert.equal((await signInOverTcp(door, { ...CREDENTIALS.app, password: 'wrong' })).result, 'refused')
  })

  it('takes for the superuser only who shows the certificate of the operator', async () => {
    await assert.rejects(
      asSuperuser(addressOf('somebody'), client => client.query('select 1')),
      /certificate authentication failed/,
    )
    await assert.rejects(
      signInOverTcp(door, { username: 'postgres', password: 'x' }, 'postgres').then(({ result }) =>
        assert.equal(result, 'ok'),
      ),
    )
  })

  it('tells the statements that it does not know', async () => {
    await assert.rejects(
      asSuperuser(addressOf('svc-operator'), client => client.query('select from elsewhere')),
      /does not know/,
    )
    assert.deepEqual(standin.strange, ['select from elsewhere'])
  })
})
