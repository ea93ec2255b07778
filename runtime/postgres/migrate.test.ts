import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { testCluster } from '../../testkit/postgres.ts'
import { assertMigrated, type Migration, MigrationError, migrate, readMigrations } from './migrate.ts'

const FIRST: Migration = { name: '0001_things', sql: 'create table things (id int primary key);' }
const SECOND: Migration = {
  name: '0002_more',
  sql: 'alter table things add column name text; insert into things values (1);',
}
const BROKEN: Migration = { name: '0002_broken', sql: 'create table half (id int); select 1/0;' }

const database = async (): Promise<string> => {
  const cluster = await testCluster()
  return cluster.url(await cluster.createDatabase({ owner: 'svc_owner' }), 'svc_owner')
}

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

const reason =
  (expected: MigrationError['reason']) =>
  (error: unknown): boolean =>
    error instanceof MigrationError && error.reason === expected

describe('migrate', () => {
  it('applies what is missing in order, records it, and does nothing the second time', async () => {
    const url = await database()
    assert.deepEqual(await migrate(url, [FIRST]), ['0001_things'])
    assert.deepEqual(await migrate(url, [FIRST, SECOND]), ['0002_more'])
    assert.deepEqual(await migrate(url, [FIRST, SECOND]), [])
    assert.deepEqual(await query(url, 'select * from things'), [{ id: 1, name: null }])
    assert.deepEqual(await query(url, 'select number, name, length(sha256) from schema_migrations order by 1'), [
      { number: 1, name: '0001_things', length: 64 },
      { number: 2, name: '0002_more', length: 64 },
    ])
  })

  it('lets eight processes start at once: each migration is applied exactly once', async () => {
    const url = await database()
    const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(url, [FIRST, SECOND])))
    assert.deepEqual(applied.flat().sort(), ['0001_things', '0002_more'])
    assert.deepEqual(await query(url, 'select count(*)::int from things'), [{ count: 1 }])
  })

  it('leaves nothing of a migration that fails, and keeps the ones before it', async () => {
    const url = await database()
    await assert.rejects(migrate(url, [FIRST, BROKEN]), reason('failed'))
    assert.deepEqual(await query(url, `select to_regclass('things')::text, to_regclass('half')::text as half`), [
      { to_regclass: 'things', half: null },
    ])
    assert.deepEqual(await migrate(url, [FIRST, SECOND]), ['0002_more'])
  })

  it('refuses an edited past file, a newer database and a file slipped in before', async () => {
    const url = await database()
    await migrate(url, [FIRST, SECOND])
    const edited = { ...FIRST, sql: `${FIRST.sql} ` }
    for (const judge of [migrate, assertMigrated]) {
      await assert.rejects(judge(url, [edited, SECOND]), reason('edited'))
      await assert.rejects(judge(url, [FIRST]), reason('newer'))
      await assert.rejects(judge(url, [FIRST, { name: '0002_slipped', sql: '' }, SECOND]), reason('out_of_order'))
    }
    assert.deepEqual(await query(url, 'select count(*)::int from schema_migrations'), [{ count: 2 }])
  })

  it('assertMigrated says what is pending, also on an empty database, and changes nothing', async () => {
    const url = await database()
    await assert.rejects(assertMigrated(url, [FIRST]), reason('pending'))
    assert.deepEqual(await query(url, `select to_regclass('schema_migrations')::text as t`), [{ t: null }])
    await migrate(url, [FIRST])
    await assertMigrated(url, [FIRST])
    await assert.rejects(assertMigrated(url, [FIRST, SECOND]), reason('pending'))
  })
})

describe('readMigrations', () => {
  let folder: string
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'svc-migrations-'))))
  afterEach(async () => rm(folder, { recursive: true }))
  const write = async (...names: string[]): Promise<URL> => {
    for (const name of names) await writeFile(join(folder, name), `-- ${name}`)
    return pathToFileURL(folder)
  }

  it('reads files in order, with or without a slash at the end of the folder', async () => {
    const url = await write('0002_b.sql', '0001_a.sql', 'README.md')
    const expected = [
      { name: '0001_a', sql: '-- 0001_a.sql' },
      { name: '0002_b', sql: '-- 0002_b.sql' },
    ]
    assert.deepEqual(await readMigrations(url), expected)
    assert.deepEqual(await readMigrations(new URL(`${url.href}/`)), expected)
  })

  for (const [why, names] of [
    ['a gap', ['0001_a.sql', '0003_c.sql']],
    ['a number twice', ['0001_a.sql', '0001_b.sql']],
    ['a name without a number', ['a.sql']],
  ] as const)
    it(`refuses ${why}`, async () => {
      await assert.rejects(readMigrations(await write(...names)), /Cannot use migration/)
    })
})
