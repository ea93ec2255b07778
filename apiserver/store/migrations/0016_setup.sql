-- Why: the first administrator: the token that makes one, and what the configuration asked for last.
-- Locks: none of what serves; new tables only. Breaking: no.
create table setup_tokens (
  -- One: each start of a server voids the one before.
  one_row    boolean primary key default true check (one_row),
  digest     bytea not null check (length(digest) = 32),
  -- The only address that it makes an administrator of; null: any.
  email      text,
  created_at timestamptz(3) not null default now()
);

create table configured_administrator (
  one_row    boolean primary key default true check (one_row),
  -- SHA-256 of the address and hash that were put in force: they are not again, until they change.
  digest     bytea not null check (length(digest) = 32),
  user_id    text not null references users,
  applied_at timestamptz(3) not null default now()
);

grant select, insert, update, delete on setup_tokens, configured_administrator to svc_api;
