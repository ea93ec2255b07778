import assert from 'node:assert/strict'
import { lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { signInOverTcp } from './sign-in.ts'

describe('signInOverTcp', () => {
  it('answers what it found although the server freezes before the session is closed', async () => {
    const cluster = await testCluster()
    const database = await cluster.createDatabase()
    const link = await lossyLink(cluster.socketFolder)
    link.swallowFarewells()
    try {
      const door = { host: '127.0.0.1', port: link.port }
      const credential = { username: 'svc_api', password: 'unused' }
      // The test cluster lets its roles in without a password.
      const answered = await signInOverTcp(door, credential, database)
      assert.deepEqual(answered, { result: 'ok' })
    } finally {
      link.stop()
    }
  })
})
