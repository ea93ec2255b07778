import type { Sql } from './sql.ts'

const POWERS = `
  select r.rolsuper as superuser,
         pg_has_role(current_user, c.relowner, 'member') as owner,
         has_table_privilege(current_user, c.oid, 'update') or has_any_column_privilege(current_user, c.oid, 'update')
           or has_table_privilege(current_user, c.oid, 'delete') or has_table_privilege(current_user, c.oid, 'truncate')
           or has_table_privilege(current_user, c.oid, 'trigger') as changes
    from pg_class c, pg_roles r
   where c.oid = to_regclass('public.audit_events') and r.rolname = current_user`

/**
 * Proves that the role we serve as cannot change or remove audit events, whatever happens in this process.
 * @throws Error when it could, or when the table is not there
 */
export const checkServingRole = async (sql: Sql): Promise<void> => {
  const powers = await sql.row<{ superuser: boolean; owner: boolean; changes: boolean }>(POWERS)
  if (powers === undefined)
    throw new Error('Cannot serve: the control-plane database has no audit table; run its migrations first')
  if (powers.superuser || powers.owner || powers.changes)
    throw new Error(
      'Cannot serve: the role of SERVICE_DATABASE_URL could change the audit log; use a role with the grants of svc_api only',
    )
}
