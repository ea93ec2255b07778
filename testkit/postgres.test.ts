import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { testCluster } from './postgres.ts'
import { skipBecause } from './skip-because.ts'

describe('testCluster', () => {
  it('starts a Postgres 17 and clones databases from a template', async () => {
    const cluster = await testCluster()
    const template = await cluster.createDatabase()
    const client = new pg.Client({ connectionString: cluster.url(template) })
    await client.connect()
    await client.query('create table marked (id int)')
    await client.end()
    const clone = new pg.Client({ connectionString: cluster.url(await cluster.createDatabase({ template })) })
    await clone.connect()
    const { rows } = await clone.query<{ found: string }>(
      `select to_regclass('marked')::text as found, current_setting('server_version_num')::int / 10000 as major`,
    )
    await clone.end()
    assert.deepEqual(rows, [{ found: 'marked', major: 17 }])
  })

  it('keeps nothing in /dev/shm, where somebody may clean up during a long run', async function () {
    if (process.platform !== 'linux') skipBecause(this, 'only Linux has /dev/shm')
    const maps = readFileSync(`/proc/${(await testCluster()).pid}/maps`, 'utf8')
    assert.match(maps, /\/pg_dynshmem\//)
    assert.doesNotMatch(maps, /\/dev\/shm\/PostgreSQL\./)
  })
})
