/**
 * Forward-only SQL migrations: `0001_name.sql`, `0002_…`, one transaction each, recorded with their SHA-256.
 * Each transaction takes the advisory lock first and reads the history afresh, so any number of processes may start at once
 * and a crash leaves either all of a migration or nothing. There is no way back: a mistake is repaired by the next file.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { type Log, silentLog } from '../log/log.ts'
import { endSession } from './end-session.ts'

/** One file: its name without `.sql`, and its text. It holds no transaction control of its own. */
export interface Migration {
  readonly name: string
  readonly sql: string
}

/** Why a database was refused. Nothing was changed, except that `failed` leaves the migrations before it in place. */
export type MigrationErrorReason = 'newer' | 'edited' | 'out_of_order' | 'pending' | 'failed'

/** The history in the database and the files do not go together, or a migration failed. */
export class MigrationError extends Error {
  readonly reason: MigrationErrorReason

  constructor(reason: MigrationErrorReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'MigrationError'
    this.reason = reason
  }
}

const CONNECT_TIMEOUT_MS = 10_000
/** How long one migration, or waiting for another process that migrates, may take. */
const MIGRATION_TIMEOUT_MS = 15 * 60_000
/** How long reading the history may take. */
const HISTORY_TIMEOUT_MS = 10_000
const ADVISORY_LOCK = 0x7376636d // "svcm"
const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/

/**
 * Reads a folder of migrations, in order.
 * @throws Error when a file is misnamed, or numbers repeat or leave gaps
 */
export const readMigrations = async (folder: URL): Promise<readonly Migration[]> => {
  const files = (await readdir(folder)).filter(file => file.endsWith('.sql')).sort()
  for (const [index, file] of files.entries())
    if (Number(FILE_NAME.exec(file)?.[1]) !== index + 1)
      throw new Error(
        `Cannot use migration "${file}": expected number ${index + 1} and a name like 0001_what_it_does.sql`,
      )
  return Promise.all(
    files.map(async file => ({
      name: file.slice(0, -4),
      sql: await readFile(new URL(file, asFolder(folder)), 'utf8'),
    })),
  )
}

const asFolder = (folder: URL): URL => (folder.href.endsWith('/') ? folder : new URL(`${folder.href}/`))

const digest = (migration: Migration): string => createHash('sha256').update(migration.sql).digest('hex')

/** The migrations that the history lacks; the history must be an exact beginning of ours. */
const judgeHistory = (
  history: readonly { name: string; sha256: string }[],
  migrations: readonly Migration[],
): readonly Migration[] => {
  const known = new Set(migrations.map(migration => migration.name))
  const unknown = history.find(row => !known.has(row.name))
  if (unknown !== undefined)
    throw new MigrationError(
      'newer',
      `Cannot use the database: it holds migration ${unknown.name}, which this version does not know. Start the version that wrote it, or a newer one`,
    )
  for (const [index, row] of history.entries()) {
    const migration = migrations[index]
    if (migration?.name !== row.name)
      throw new MigrationError('out_of_order', `Cannot use the database: it lacks a migration before ${row.name}`)
    if (digest(migration) !== row.sha256)
      throw new MigrationError('edited', `Cannot use the database: ${row.name} was edited after it was applied`)
  }
  return migrations.slice(history.length)
}

const readHistory = async (client: pg.Client): Promise<{ name: string; sha256: string }[]> =>
  (await client.query<{ name: string; sha256: string }>('select name, sha256 from schema_migrations order by number'))
    .rows

const isMissingTable = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '42P01'

const withClient = async <T>(url: string, timeoutMs: number, use: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'svc-migrate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + 5000,
    keepAlive: true,
  })
  client.on('error', () => undefined) // a lost connection also fails the query under way, which is where it is told
  await client.connect()
  try {
    return await use(client)
  } finally {
    await endSession(client)
  }
}

/** Applies the next missing migration in a transaction of its own; its name, or undefined when none is missing. */
const applyNext = async (client: pg.Client, migrations: readonly Migration[]): Promise<string | undefined> => {
  await client.query('begin')
  try {
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    await client.query(`create table if not exists schema_migrations (
      number integer primary key, name text not null unique, sha256 text not null, applied_at timestamptz not null default now())`)
    const history = await readHistory(client)
    const next = judgeHistory(history, migrations)[0]
    if (next !== undefined) {
      try {
        await client.query(next.sql)
        await client.query('insert into schema_migrations (number, name, sha256) values ($1, $2, $3)', [
          history.length + 1,
          next.name,
          digest(next),
        ])
      } catch (error) {
        throw new MigrationError('failed', `Migration ${next.name} failed: ${(error as Error).message}`, error)
      }
    }
    await client.query('commit')
    return next?.name
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/**
 * Brings a database up to date and answers the names of what was applied. Give the URL of the role that owns the schema.
 * @throws MigrationError `newer`, `edited`, `out_of_order`, `failed`; the driver's error when the database cannot be reached
 */
export const migrate = async (
  url: string,
  migrations: readonly Migration[],
  log: Log = silentLog,
): Promise<readonly string[]> =>
  withClient(url, MIGRATION_TIMEOUT_MS, async client => {
    const applied: string[] = []
    for (;;) {
      const name = await applyNext(client, migrations)
      if (name === undefined) return applied
      applied.push(name)
      log.info({ migration: name }, 'Applied a migration')
    }
  })

/**
 * Checks without changing anything that a database is up to date, for processes that hold no owner's URL
 * (their role needs SELECT on `schema_migrations`).
 * @throws MigrationError `newer`, `edited`, `out_of_order`, `pending`
 */
export const assertMigrated = async (url: string, migrations: readonly Migration[]): Promise<void> =>
  withClient(url, HISTORY_TIMEOUT_MS, async client => {
    const history = await readHistory(client).catch((error: unknown) => {
      if (isMissingTable(error)) return []
      throw error
    })
    const pending = judgeHistory(history, migrations)
    if (pending[0] !== undefined)
      throw new MigrationError(
        'pending',
        `Cannot use the database: it lacks migration ${pending[0].name}; run the migrations first`,
      )
  })
