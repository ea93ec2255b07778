import type { Log } from '../log/log.ts'
import { migrate, readMigrations } from '../postgres/migrate.ts'

/**
 * Brings the database of the embedded store and the sealed credentials up to date; answers what was applied.
 * The URL is that of the role that owns the database; the same role serves it.
 * @throws MigrationError when the database is newer than this product or was tampered with
 */
export const migrateEmbeddedStore = async (url: string, log?: Log): Promise<readonly string[]> =>
  migrate(url, await readMigrations(new URL('./migrations/', import.meta.url)), log)
