import assert from 'node:assert/strict'
import pg from 'pg'
import { type LossyLink, lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { endSession } from './end-session.ts'

describe('endSession', () => {
  let link: LossyLink
  let client: pg.Client
  beforeEach(async () => {
    link = await lossyLink((await testCluster()).socketFolder)
    client = new pg.Client({ host: '127.0.0.1', port: link.port, user: 'postgres', database: 'postgres' })
    client.on('error', () => undefined)
  })
  afterEach(() => link.stop())

  it('returns from a server that never answers the farewell, its connection cut', async () => {
    await client.connect()
    link.swallowFarewells()
    await endSession(client, 50)
    assert.equal(client.connection.stream.destroyed, true)
  })

  it('returns in the middle of a statement that nobody answers', async () => {
    await client.connect()
    link.fallSilent()
    const asked = assert.rejects(client.query('select 1'), /Connection terminated/)
    await endSession(client, 50)
    await asked
  })

  it('returns for a session that was never opened, that was refused, or that is over', async () => {
    await endSession(client)
    const nobody = new pg.Client({ host: '127.0.0.1', port: link.port, user: 'nobody_here', database: 'postgres' })
    nobody.on('error', () => undefined)
    await assert.rejects(nobody.connect(), { code: '28000' })
    await endSession(nobody)
    const again = new pg.Client({ host: '127.0.0.1', port: link.port, user: 'postgres', database: 'postgres' })
    await again.connect()
    await endSession(again)
    await endSession(again)
  })
})
