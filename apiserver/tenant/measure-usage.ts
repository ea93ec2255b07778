import { inTenantDatabase, type TenantTarget } from './tenant-database.ts'

/** What an environment's database uses right now. */
export interface MeasuredUsage {
  readonly databaseBytes: number
  /** The tenant's sessions, ours aside. */
  readonly connections: number
}

// backend_type is hidden from a role that is a member of nothing: a tenant's parallel workers count as sessions.
const MEASURE = `
  select pg_catalog.pg_database_size(pg_catalog.current_database())::text as "databaseBytes",
         (select pg_catalog.count(*)::int from pg_catalog.pg_stat_activity
           where datname = pg_catalog.current_database() and usename <> current_user) as connections`

/** Asks the database itself. @throws the driver's error when it cannot be reached in time */
export const measureUsage = (target: TenantTarget): Promise<MeasuredUsage> =>
  inTenantDatabase(target, async query => {
    const [row] = await query<{ databaseBytes: string; connections: number }>(MEASURE)
    if (row === undefined) throw new Error('A database did not tell its size')
    return { databaseBytes: Number(row.databaseBytes), connections: row.connections }
  })
