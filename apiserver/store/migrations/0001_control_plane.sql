-- Why: the tables of the control plane: who may do what, projects, environments, operations, intents, audit.
-- Locks: none that matter, everything is new. Breaking: no.
-- Runs as svc_owner. svc_api serves with exactly the grants at the end of this file.
-- Times are kept to the millisecond, as JavaScript reads them: a keyset cursor then meets exactly the row it was made from.

create table users (
  user_id     text primary key check (user_id ~ '^usr_[0-9a-z]{20,40}$'),
  email       text unique check (email = lower(email)),
  name        text not null default '',
  is_operator boolean not null default false,
  disabled_at timestamptz(3),
  created_at  timestamptz(3) not null default now()
);

create table tokens (
  id              text primary key check (id ~ '^tok_[0-9a-z]{20,40}$'),
  user_id         text not null references users,
  kind            text not null check (kind in ('personal', 'agent')),
  name            text not null,
  digest          bytea not null unique check (length(digest) = 32),
  token_prefix    text not null,
  scopes          text[],
  organization_id text,
  created_at      timestamptz(3) not null default now(),
  last_used_at    timestamptz(3),
  expires_at      timestamptz(3),
  revoked_at      timestamptz(3)
);
create index tokens_by_user on tokens (user_id, created_at desc, id desc);

create table organizations (
  organization_id text primary key,
  name            text not null,
  created_at      timestamptz(3) not null default now(),
  updated_at      timestamptz(3) not null default now()
);

create table memberships (
  organization_id text not null references organizations,
  user_id         text not null references users,
  role            text not null check (role in ('viewer', 'developer', 'admin', 'owner')),
  created_at      timestamptz(3) not null default now(),
  primary key (organization_id, user_id)
);
create index memberships_by_user on memberships (user_id);

create table projects (
  organization_id    text not null references organizations,
  project_id         text not null,
  region             text not null,
  postgres_major     integer not null check (postgres_major = 17),
  protect_production boolean not null default false,
  namespace          text not null,
  created_at         timestamptz(3) not null default now(),
  updated_at         timestamptz(3) not null default now(),
  -- A deleted project keeps its row, for the history of its environments; PUT brings it back, empty.
  deleted_at         timestamptz(3),
  primary key (organization_id, project_id)
);

-- One row an incarnation: an id used again gets a new row, and the old one keeps its operations.
-- `phase`, `uid`, `status` and the observed columns are written by dispatch and projector only (one exception: a delete
-- that cancels a create which was never carried anywhere writes `deleted`); `seq` by commands only.
create table environments (
  id                    uuid primary key default gen_random_uuid(),
  organization_id       text not null,
  project_id            text not null,
  environment_id        text not null,
  kind                  text not null check (kind in ('production', 'staging', 'preview')),
  data_mode             text not null check (data_mode in ('snapshot', 'sanitized', 'schema_only')),
  region                text not null,
  postgres_major        integer not null,
  ttl_hours             integer,
  expires_at            timestamptz(3),
  deletion_protection   boolean not null default false,
  deletion_policy       text not null check (deletion_policy in ('Retain', 'Delete')),
  source_environment_id text,
  namespace             text not null,
  resource_name         text not null,
  uid                   text unique,
  seq                   bigint not null default 0,
  phase                 text not null default 'requested' check (phase in ('requested', 'provisioning', 'ready',
                          'suspended', 'updating', 'failed_recoverable', 'deleting', 'deleted')),
  status                jsonb,
  observed_generation   bigint,
  observed_spec         jsonb,
  created_at            timestamptz(3) not null default now(),
  updated_at            timestamptz(3) not null default now(),
  deleted_at            timestamptz(3),
  replaced_at           timestamptz(3),
  foreign key (organization_id, project_id) references projects
);
create unique index environments_current on environments (organization_id, project_id, environment_id)
  where replaced_at is null;
create index environments_by_age on environments (organization_id, created_at, id) where replaced_at is null;

create table operations (
  id              text primary key check (id ~ '^op_[0-9a-z]{20,40}$'),
  kind            text not null check (kind in ('create_environment', 'delete_environment', 'suspend_environment',
                                                'resume_environment', 'run_migrations', 'import')),
  state           text not null default 'pending' check (state in ('pending', 'running', 'succeeded', 'failed')),
  organization_id text not null,
  project_id      text not null,
  environment_id  text not null,
  environment_row uuid not null references environments,
  seq             bigint not null,
  actor           text not null,
  request_id      text not null,
  attempt_count   integer not null default 0,
  result          jsonb,
  error           text,
  deadline_at     timestamptz(3),
  created_at      timestamptz(3) not null default now(),
  updated_at      timestamptz(3) not null default now(),
  check ((state = 'failed') = (error is not null))
);
-- One operation under way per environment; everything about concurrency rests on this index.
create unique index operations_one_open on operations (environment_row) where state in ('pending', 'running');
create index operations_by_environment on operations (environment_row, seq);
create index operations_open on operations (deadline_at) where state in ('pending', 'running');

-- What has to be carried to the resource store, in `seq` order per environment. `update` intents (PATCH) have no operation.
-- pending -> dispatched | failed | cancelled. `folded` says that the projector saw their effect. `payload` speaks the
-- resource's words: the whole spec for a create, a merge patch of it for an update, else {}.
-- `attempts` rises in a committed transaction before the store is called: 0 therefore means that nobody carried it, and
-- only such an intent may be cancelled.
create table intents (
  id              bigint generated always as identity primary key,
  environment_row uuid not null references environments,
  seq             bigint not null,
  operation_id    text references operations,
  request_id      text not null,
  verb            text not null check (verb in ('create', 'suspend', 'resume', 'delete', 'update')),
  payload         jsonb not null,
  state           text not null default 'pending' check (state in ('pending', 'dispatched', 'failed', 'cancelled')),
  attempts        integer not null default 0,
  last_error      text,
  folded          boolean not null default false,
  created_at      timestamptz(3) not null default now(),
  dispatched_at   timestamptz(3),
  unique (environment_row, seq)
);
create index intents_pending on intents (id) where state = 'pending';

-- Renewals are written through: recorded before the store is patched, finished after, so that neither a lost answer
-- nor a crash in between is taken for somebody else's change.
create table renewals (
  id              bigint generated always as identity primary key,
  environment_row uuid not null references environments,
  ttl_hours       integer not null,
  expires_at      timestamptz(3) not null,
  actor           text not null,
  request_id      text not null,
  metadata        jsonb not null,
  state           text not null default 'pending' check (state in ('pending', 'applied', 'abandoned')),
  folded          boolean not null default false,
  created_at      timestamptz(3) not null default now()
);
create index renewals_pending on renewals (environment_row) where state = 'pending';

-- What happened behind the API's back and was recorded: each (uid, generation) once.
create table external_changes (
  uid         text not null,
  generation  bigint not null,
  recorded_at timestamptz(3) not null default now(),
  primary key (uid, generation)
);

create table leases (
  name       text primary key,
  holder     text not null,
  term       bigint not null,
  expires_at timestamptz(3) not null
);

create table idempotency_keys (
  scope_hash  bytea not null,
  key_hash    bytea not null,
  fingerprint bytea not null,
  status      integer,
  headers     jsonb,
  body        bytea,
  -- A reply that holds a secret is sealed, and `body` is forgotten at `secret_expires_at`; `subject_id` names what was made.
  sealed      boolean not null default false,
  subject_id  text,
  secret_expires_at timestamptz(3),
  created_at  timestamptz(3) not null default now(),
  expires_at  timestamptz(3) not null,
  primary key (scope_hash, key_hash)
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- Audit: append-only, numbered per organization without gaps in commit order. The head row's lock is held from the
-- insert to the commit, so insert as the last statement of a transaction. Account events are those of a user and no
-- organization; their one head is the empty id, which no organization can have.
create table audit_heads (
  organization_id text primary key,
  last_id         bigint not null
);
create table audit_events (
  organization_id text not null check (organization_id <> ''),
  id              bigint not null,
  actor           text not null,
  action          text not null,
  resource_kind   text not null,
  resource_id     text not null,
  occurred_at     timestamptz(3) not null,
  metadata        jsonb not null,
  primary key (organization_id, id)
);
create table account_events (
  id              bigint primary key,
  type            text not null,
  user_id         text,
  email           text,
  client_ip       text,
  user_agent      text,
  occurred_at     timestamptz(3) not null,
  metadata        jsonb not null
);

create function next_audit_id(head_id text) returns bigint language sql security definer
  set search_path = pg_catalog, pg_temp as $$
  insert into public.audit_heads as head (organization_id, last_id) values (head_id, 1)
    on conflict (organization_id) do update set last_id = head.last_id + 1
    returning last_id
$$;
revoke execute on function next_audit_id from public;

create function number_audit_event() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
begin
  if new.id is not null or new.occurred_at is not null then
    raise exception 'Number and time of an audit event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  new.id := public.next_audit_id(new.organization_id);
  new.occurred_at := clock_timestamp();
  return new;
end $$;
create function number_account_event() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
begin
  if new.id is not null or new.occurred_at is not null then
    raise exception 'Number and time of an account event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  new.id := public.next_audit_id('');
  new.occurred_at := clock_timestamp();
  return new;
end $$;
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'Audit events cannot be changed or removed' using errcode = 'insufficient_privilege';
end $$;

create trigger audit_events_number before insert on audit_events for each row execute function number_audit_event();
create trigger audit_events_append_only before update or delete on audit_events
  for each row execute function refuse_audit_change();
create trigger audit_events_no_truncate before truncate on audit_events
  for each statement execute function refuse_audit_change();
create trigger account_events_number before insert on account_events
  for each row execute function number_account_event();
create trigger account_events_append_only before update or delete on account_events
  for each row execute function refuse_audit_change();
create trigger account_events_no_truncate before truncate on account_events
  for each statement execute function refuse_audit_change();
-- Always: a session_replication_role of replica must not switch them off.
alter table audit_events enable always trigger audit_events_number;
alter table audit_events enable always trigger audit_events_append_only;
alter table audit_events enable always trigger audit_events_no_truncate;
alter table account_events enable always trigger account_events_number;
alter table account_events enable always trigger account_events_append_only;
alter table account_events enable always trigger account_events_no_truncate;

grant select on schema_migrations to svc_api;
grant select, insert, update on users, tokens, organizations, memberships, projects, environments, operations, intents,
  renewals, leases, idempotency_keys to svc_api;
grant select, insert on external_changes to svc_api;
grant delete on memberships, idempotency_keys to svc_api;
grant select on audit_events, account_events to svc_api;
-- Column by column: id and occurred_at cannot be given by the serving role.
grant insert (organization_id, actor, action, resource_kind, resource_id, metadata) on audit_events to svc_api;
grant insert (type, user_id, email, client_ip, user_agent, metadata) on account_events to svc_api;
