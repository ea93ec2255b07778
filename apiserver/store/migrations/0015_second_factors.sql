-- Why: second factors: codes of an app, recovery codes, and what a sign-in waits with between its two steps.
-- Locks: none of what serves; new tables only. Breaking: no.
create table second_factors (
  user_id        text primary key references users,
  sealed_secret  text not null,
  -- Counts the account's secrets: part of the seal, so that an older one opens nowhere.
  version        bigint not null,
  -- The step of the last code that was taken: none is taken twice.
  totp_last_step bigint not null default 0,
  enabled_at     timestamptz(3),
  pending_until  timestamptz(3),
  check ((enabled_at is null) <> (pending_until is null))
);

create table recovery_codes (
  user_id text not null references users,
  digest  bytea not null check (length(digest) = 32),
  primary key (user_id, digest)
);

create table mfa_tokens (
  digest     bytea primary key check (length(digest) = 32),
  user_id    text not null references users,
  method     text not null check (method in ('password', 'email_link')),
  tries      integer not null default 0,
  expires_at timestamptz(3) not null
);
create index mfa_tokens_by_user on mfa_tokens (user_id);
create index mfa_tokens_by_expiry on mfa_tokens (expires_at);

grant select, insert, update, delete on second_factors, recovery_codes, mfa_tokens to svc_api;
