/**
 * Brings the control-plane database up to date, and ends: for where the server itself is not to hold the owner's credentials.
 * Waits for a database that is still starting.
 */
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import { MigrationError, migrate, readMigrations } from '../runtime/postgres/migrate.ts'
import { untilBack } from '../runtime/postgres/until-back.ts'
import { migrationEnv, processEnvironment } from './config/env.ts'
import { MIGRATIONS_FOLDER } from './store/migrations.ts'

const PATIENCE_MS = 120_000

try {
  const env = parseEnv(migrationEnv, processEnvironment())
  const log = jsonLog(lineBuffer(process.stdout), env.SERVICE_LOG_LEVEL)
  const migrations = await readMigrations(MIGRATIONS_FOLDER)
  await untilBack(() => migrate(env.SERVICE_DATABASE_OWNER_URL, migrations, log), PATIENCE_MS)
  log.info({ migrations: migrations.length }, 'The control-plane database is up to date')
} catch (error) {
  const told = error instanceof ConfigError || error instanceof MigrationError
  console.error(told ? error.message : error)
  process.exitCode = 1
}
