import type { Sql } from './sql.ts'

/** Each way to rewrite history, and how it is said. A table's owner may switch its triggers off. */
const POWERS = `with audit as (
    select c.oid, c.relowner, c.relname = 'audit_heads' as is_head from pg_class c
    where c.oid in ('audit_events'::regclass, 'account_events'::regclass, 'audit_heads'::regclass))
  select array_remove(array[
    case when exists (select from pg_roles r where r.rolsuper and pg_has_role(r.oid, 'member'))
      then 'is or may become a superuser' end,
    case when exists (select from audit where pg_has_role(relowner, 'member'))
      then 'owns the tables, or may become their owner' end,
    case when exists (select from audit where has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')
        or has_any_column_privilege(oid, 'UPDATE'))
      then 'may change or remove rows' end,
    case when exists (select from audit where has_table_privilege(oid, 'TRIGGER')) then 'may add triggers' end,
    case when exists (select from audit where is_head and has_any_column_privilege(oid, 'INSERT'))
        or exists (select from audit where not is_head and (has_column_privilege(oid, 'id', 'INSERT')
          or has_column_privilege(oid, 'occurred_at', 'INSERT')))
        or has_function_privilege('next_audit_link(text)', 'EXECUTE')
      then 'may choose the number or time of an event' end,
    case when exists (select from pg_roles r where r.rolname in ('pg_execute_server_program', 'pg_write_server_files')
        and pg_has_role(r.oid, 'member'))
      then 'may write files or run programs on the database server' end
  ], null) as powers`

/**
 * Proves that the role we serve as cannot change or remove audit events, whatever happens in this process.
 * @throws Error with every reason why it could, or when the tables are not there
 */
export const checkServingRole = async (sql: Sql): Promise<void> => {
  const migrated = await sql.row<{ there: boolean }>(`select to_regclass('public.audit_events') is not null as there`)
  if (migrated?.there !== true)
    throw new Error('Cannot serve: the control-plane database has no audit table; run its migrations first')
  const { powers } = (await sql.row<{ powers: readonly string[] }>(POWERS)) ?? { powers: ['cannot be looked up'] }
  if (powers.length > 0)
    throw new Error(
      `Cannot serve: the role of SERVICE_DATABASE_URL could change the audit log; use a role with the grants of svc_api only (it ${powers.join('; it ')})`,
    )
}
