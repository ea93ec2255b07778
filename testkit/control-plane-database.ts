/** Control-plane databases for tests: migrated once a process as svc_owner, cloned for each file, served as svc_api. */
import { Database, type DatabaseOptions } from '../apiserver/store/database.ts'
import { MIGRATIONS_FOLDER } from '../apiserver/store/migrations.ts'
import { silentLog } from '../runtime/log/log.ts'
import { migrate, readMigrations } from '../runtime/postgres/migrate.ts'
import { testCluster } from './postgres.ts'

let template: Promise<string> | undefined

const makeTemplate = async (): Promise<string> => {
  const cluster = await testCluster()
  const name = await cluster.createDatabase({ owner: 'svc_owner' })
  await migrate(cluster.url(name, 'svc_owner'), await readMigrations(MIGRATIONS_FOLDER))
  return name
}

export interface ControlPlaneDatabase {
  readonly name: string
  /** The database as the API server uses it. */
  readonly database: Database
  /** The URL of a role: svc_api serves, svc_owner owns, postgres may do anything. */
  url(role: 'svc_api' | 'svc_owner' | 'postgres'): string
  /** Another pool on the same database, as a second API process has it. Stop it yourself. */
  open(options?: Partial<DatabaseOptions>): Database
}

/** A fresh control-plane database. Stop `database` when done. */
export const controlPlaneDatabase = async (options: Partial<DatabaseOptions> = {}): Promise<ControlPlaneDatabase> => {
  const cluster = await testCluster()
  const name = await cluster.createDatabase({ template: await (template ??= makeTemplate()), owner: 'svc_owner' })
  const open = (more: Partial<DatabaseOptions> = {}): Database =>
    new Database({ url: cluster.url(name, 'svc_api'), log: silentLog, ...more })
  return { name, database: open(options), url: role => cluster.url(name, role), open }
}

/** Every row of every table, as text, bytes in hex; without the verifiers of passwords, one of which an operator gives us. */
export const dumpOf = async (plane: ControlPlaneDatabase): Promise<readonly string[]> => {
  const database = plane.open({ url: plane.url('postgres') })
  try {
    const tables = await database.rows<{ name: string }>(
      `select quote_ident(relname) as name from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`,
    )
    const rows: string[] = []
    for (const { name } of tables) {
      const row = name === 'passwords' ? `to_jsonb(r) - 'hash'` : 'r'
      for (const { text } of await database.rows<{ text: string }>(`select (${row})::text as text from ${name} r`))
        rows.push(`${name}: ${text}`)
    }
    return rows
  } finally {
    await database.stop()
  }
}
