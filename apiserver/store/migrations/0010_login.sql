-- Why: the built-in login: passwords, sessions, what limits guessing.
-- Locks: none of what serves; new tables only. Breaking: no.

-- Apart from users, so that no list of people can hold it.
create table passwords (
  user_id    text primary key references users,
  -- argon2id, as a PHC string.
  hash       text not null,
  changed_at timestamptz(3) not null default now()
);

create table sessions (
  id                 text primary key check (id ~ '^ses_[0-9a-z]{20,40}$'),
  user_id            text not null references users,
  method             text not null check (method in ('password', 'email_link', 'setup', 'sso')),
  -- Of single sign-on: it reaches this organization alone.
  organization_id    text references organizations,
  token_prefix       text not null,
  client_ip          text not null,
  user_agent         text,
  generation         integer not null default 0,
  created_at         timestamptz(3) not null default now(),
  last_used_at       timestamptz(3) not null default now(),
  rotated_at         timestamptz(3) not null default now(),
  -- When a factor was last proved: what is sensitive asks for a fresh one.
  authenticated_at   timestamptz(3) not null default now()
);
create index sessions_by_user on sessions (user_id, created_at desc, id desc);
create index sessions_by_age on sessions (created_at);

-- The tokens that a session has had: the one in force, and those that it replaced, whose use after a moment's grace means that
-- somebody else has one.
create table session_tokens (
  digest      bytea primary key check (length(digest) = 32),
  session_id  text not null references sessions on delete cascade,
  generation  integer not null,
  replaced_at timestamptz(3),
  unique (session_id, generation)
);

-- Failed sign-ins by SHA-256 of the address that was typed, whether an account has it or not.
create table sign_in_failures (
  account_key bytea primary key check (length(account_key) = 32),
  failed      timestamptz[] not null,
  locked_at   timestamptz,
  locked_until timestamptz,
  expires_at  timestamptz not null
);
create index sign_in_failures_by_expiry on sign_in_failures (expires_at);

-- How often something was tried lately, shared by replicas: a bucket names what, the key who, as a SHA-256.
create table attempts (
  bucket     text not null,
  key        bytea not null check (length(key) = 32),
  hits       timestamptz[] not null,
  expires_at timestamptz not null,
  primary key (bucket, key)
);
create index attempts_by_expiry on attempts (expires_at);

grant select, insert, update, delete on passwords, sessions, session_tokens, sign_in_failures, attempts to svc_api;
