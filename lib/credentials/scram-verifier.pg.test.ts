import assert from 'node:assert/strict'
import pg from 'pg'
import { testCluster } from '../../testkit/postgres.ts'
import { matchesVerifier } from './scram-verifier.ts'

describe('matchesVerifier', () => {
  it('knows what Postgres itself keeps of a password', async () => {
    const client = new pg.Client({ connectionString: (await testCluster()).url('postgres') })
    await client.connect()
    try {
      await client.query(`set password_encryption = 'scram-sha-256'`)
      for (const password of ['a', 'x"y\'z\\$1', 'Zm9v'.repeat(16)]) {
        await client.query(`create role scram_probe password ${client.escapeLiteral(password)}`)
        const { rows } = await client.query<{ rolpassword: string }>(
          `select rolpassword from pg_authid where rolname = 'scram_probe'`,
        )
        await client.query('drop role scram_probe')
        assert.equal(await matchesVerifier(password, rows[0]!.rolpassword), true)
        assert.equal(await matchesVerifier(`${password}x`, rows[0]!.rolpassword), false)
      }
    } finally {
      await client.end()
    }
  })

  it('knows nothing else', async () => {
    for (const kept of ['', 'md5d41d8cd98f00b204e9800998ecf8427e', 'SCRAM-SHA-256$0:AAAA$x:y', 'clear'])
      assert.equal(await matchesVerifier('clear', kept), false)
  })
})
