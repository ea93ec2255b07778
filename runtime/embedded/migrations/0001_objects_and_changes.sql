-- Why: resources, and the log of their changes that watchers follow.
-- Locks: none that matter, everything is new. Breaking: no. Runs as svc_store, which owns the database and serves it too.

-- What is. `resource` is "<plural>.<group>". `body` holds finalizers, annotations, ownerReferences, lastManager, spec, status;
-- json and not jsonb, so that any JSON text (\u0000 too) comes back as it was written.
create table objects (
  resource       text        not null,
  namespace      text        not null,
  name           text        not null,
  uid            uuid        not null unique,
  version        bigint      not null,
  generation     bigint      not null,
  created_at     timestamptz not null,
  deleting_since timestamptz,
  labels         jsonb       not null,
  body           json        not null,
  primary key (resource, namespace, name)
) with (fillfactor = 70); -- room for HOT updates: no index holds what changes

-- What happened: the object as it was after each change, in the order of commits. For `deleted` the object as it went.
create table changes (
  version         bigint      primary key,
  type            text        not null check (type in ('added', 'modified', 'deleted')),
  previous_labels jsonb,
  resource        text        not null,
  namespace       text        not null,
  name            text        not null,
  uid             uuid        not null,
  generation      bigint      not null,
  created_at      timestamptz not null,
  deleting_since  timestamptz,
  labels          jsonb       not null,
  body            json        not null,
  changed_at      timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);

-- The low-water mark: every change up to `through` may be gone from the log. One row.
create table compaction (
  one_row boolean primary key default true check (one_row),
  through bigint  not null
);
insert into compaction (through) values (0);

create sequence versions;

-- The one way to a version. Called when all that may wait (the row's lock) is done: from here to the commit nothing waits,
-- and whoever gets a higher version commits later. So a snapshot that shows a version shows every lower one, which is what
-- lets a reader resume by "version > last". The lock is a statement of its own: what follows sees what its last holder wrote.
create function next_version() returns bigint language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Changes need READ COMMITTED: an older snapshot would break the order of versions';
  end if;
  perform pg_advisory_xact_lock(1937138547); -- "svcs"
  return nextval('versions');
end $$;

create function log_change(kind text, old_labels jsonb, o objects) returns void language plpgsql as $$
begin
  insert into changes (version, type, previous_labels, resource, namespace, name, uid, generation, created_at,
                       deleting_since, labels, body)
    values (o.version, kind, old_labels, o.resource, o.namespace, o.name, o.uid, o.generation, o.created_at,
            o.deleting_since, o.labels, o.body);
  perform pg_notify('svc_resources', o.version || ' ' || o.resource);
end $$;

-- Answers no row when the name is taken.
create function create_object(p_resource text, p_namespace text, p_name text, p_uid uuid, p_labels jsonb, p_body json)
returns setof objects language plpgsql as $$
declare
  made  objects;
  given bigint;
begin
  -- Spares the lock; the insert below decides.
  if exists (select from objects o where o.resource = p_resource and o.namespace = p_namespace and o.name = p_name) then
    return;
  end if;
  given := next_version();
  insert into objects (resource, namespace, name, uid, version, generation, created_at, labels, body)
    values (p_resource, p_namespace, p_name, p_uid, given, 1,
            date_trunc('milliseconds', clock_timestamp()), p_labels, p_body)
    on conflict (resource, namespace, name) do nothing
    returning * into made;
  if found then
    perform log_change('added', null, made);
    return next made;
  end if;
end $$;

-- Writes or removes an object whose row the transaction has locked; answers the new version.
create function change_object(p_uid uuid, p_generation bigint, p_deleting_since timestamptz, p_labels jsonb, p_body json,
                              p_remove boolean)
returns bigint language plpgsql as $$
declare
  o          objects;
  old_labels jsonb;
begin
  select * into strict o from objects where uid = p_uid;
  old_labels := o.labels;
  o.version := next_version();
  o.generation := p_generation;
  o.deleting_since := p_deleting_since;
  o.labels := p_labels;
  o.body := p_body;
  if p_remove then
    delete from objects where uid = p_uid;
    perform log_change('deleted', old_labels, o);
  else
    update objects set version = o.version, generation = o.generation, deleting_since = o.deleting_since,
                       labels = o.labels, body = o.body
      where uid = p_uid;
    perform log_change('modified', old_labels, o);
  end if;
  return o.version;
end $$;

-- Drops from the log what is older than `p_keep`, sparing the newest `p_least` versions, some `p_most` at a time so that no
-- backlog is too long for a statement's deadline; answers how many went. Call it until that is none.
-- The mark rises in the same transaction, so a reader sees either the changes or the mark above them.
create function compact_changes(p_keep interval, p_least bigint, p_most bigint) returns bigint language plpgsql as $$
declare
  mark    bigint;
  dropped bigint;
begin
  if not pg_try_advisory_xact_lock(1937138531) then -- "svcc": somebody else is at it
    return 0;
  end if;
  select coalesce((select version from changes where changed_at >= clock_timestamp() - p_keep order by version limit 1) - 1,
                  (select max(version) from changes))
    into mark;
  select least(mark, max(version) - p_least, min(version) + p_most - 1) into mark from changes;
  update compaction set through = mark where through < mark;
  if not found then
    return 0;
  end if;
  delete from changes where version <= mark;
  get diagnostics dropped = row_count;
  return dropped;
end $$;
