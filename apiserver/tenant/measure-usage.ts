import { inTenantDatabase, type TenantTarget } from './tenant-database.ts'

/** What an environment's database uses right now. */
export interface MeasuredUsage {
  readonly databaseBytes: number
  /** The tenant's sessions, ours aside. */
  readonly connections: number
}

// Our role sees no backend_type of others, so a tenant's parallel workers count as sessions; superusers are the operator.
const MEASURE = `
  select pg_catalog.pg_database_size(pg_catalog.current_database())::text as "databaseBytes",
         (select pg_catalog.count(*)::int
            from pg_catalog.pg_stat_activity a join pg_catalog.pg_roles r on r.oid = a.usesysid
           where a.datname = pg_catalog.current_database() and a.usename <> current_user and not r.rolsuper) as connections`

/** Asks the database itself. @throws the driver's error when it cannot be reached in time */
export const measureUsage = (target: TenantTarget): Promise<MeasuredUsage> =>
  inTenantDatabase(target, async query => {
    const [row] = await query<{ databaseBytes: string; connections: number }>(MEASURE)
    if (row === undefined) throw new Error('A database did not tell its size')
    return { databaseBytes: Number(row.databaseBytes), connections: row.connections }
  })
