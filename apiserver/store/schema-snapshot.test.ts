import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { controlPlaneDatabase } from '../../testkit/control-plane-database.ts'

/** Everything that the migrations made, in an order of its own, as statements that a reader knows. */
const SCHEMA = `
  with tables as (select c.oid, c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'),
  lines (name, part, position, line) as (
    select t.name, 1, a.attnum::int, format('%I.%I %s%s%s', t.name, a.attname, format_type(a.atttypid, a.atttypmod),
        case when a.attnotnull then ' not null' else '' end,
        case when a.attidentity <> '' then ' generated always as identity'
             else coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') end)
      from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    select t.name, 2, 0, format('%I constraint %I %s', t.name, c.conname, pg_get_constraintdef(c.oid))
      from tables t join pg_constraint c on c.conrelid = t.oid where c.contype <> 'n'
    union all
    select t.name, 3, 0, pg_get_indexdef(i.indexrelid)
      from tables t join pg_index i on i.indrelid = t.oid
      where not exists (select from pg_constraint c where c.conindid = i.indexrelid)
    union all
    select t.name, 4, 0, pg_get_triggerdef(g.oid) || case g.tgenabled when 'A' then ' (always)' else '' end
      from tables t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
    union all
    select t.name, 5, 0, format('grant %s on %I to %s', lower(x.privilege_type), t.name, pg_get_userbyid(x.grantee))
      from tables t join pg_class c on c.oid = t.oid, aclexplode(c.relacl) x where x.grantee <> c.relowner
    union all
    select t.name, 6, 0, format('grant %s (%I) on %I to %s', lower(x.privilege_type), a.attname, t.name, pg_get_userbyid(x.grantee))
      from tables t join pg_attribute a on a.attrelid = t.oid, aclexplode(a.attacl) x
    union all
    select '~', 7, 0, pg_get_functiondef(p.oid) || ' -- execute: ' || coalesce((select string_agg(
        case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end, ', ' order by x.grantee)
        from aclexplode(p.proacl) x where x.grantee <> p.proowner), case when p.proacl is null then 'public' else 'nobody' end)
      from pg_proc p where p.pronamespace = 'public'::regnamespace)
  select line from lines order by name, part, position, line`

const SNAPSHOT = new URL('./schema.snapshot.sql', import.meta.url)

describe('the migrations', () => {
  it('make the schema of schema.snapshot.sql; write it anew with UPDATE_SNAPSHOTS=1', async () => {
    const plane = await controlPlaneDatabase()
    const client = new pg.Client({ connectionString: plane.url('svc_owner') })
    await client.connect()
    const { rows } = await client.query<{ line: string }>(SCHEMA)
    await client.end()
    await plane.database.stop()
    const schema = `-- What the migrations make, for reading; compared by schema-snapshot.test.ts. Never edited by hand.\n${rows
      .map(({ line }) => line.trimEnd())
      .join('\n')}\n`
    if (process.env['UPDATE_SNAPSHOTS'] === '1') writeFileSync(SNAPSHOT, schema)
    assert.equal(schema, existsSync(SNAPSHOT) ? readFileSync(SNAPSHOT, 'utf8') : '')
  })
})
