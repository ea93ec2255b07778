-- Why: sign-in of coding agents by the device flow (RFC 8628).
-- Locks: none of what serves; a new table only. Breaking: no.

-- Of both codes digests alone: the device's is 256 bits, a user's is short and so keyed. They stay for a while after they ran
-- out, so that a client that still asks is told that.
create table device_requests (
  device_digest    bytea primary key check (length(device_digest) = 32),
  user_code_digest bytea not null unique check (length(user_code_digest) = 32),
  client_name      text not null,
  client_ip        text not null,
  client_key       text not null,
  scopes           text[] not null check (cardinality(scopes) > 0),
  organization_id  text,
  -- Seconds that the token is to live at most; null: for ever.
  life_seconds     integer,
  state            text not null default 'pending' check (state in ('pending', 'approved', 'denied', 'redeemed')),
  interval_seconds integer not null,
  polled_at        timestamptz(3),
  created_at       timestamptz(3) not null default now(),
  expires_at       timestamptz(3) not null,
  -- What was granted, by whom: the token is made when it is fetched, so that nothing secret waits here.
  decided_by             text references users,
  token_id               text unique,
  granted_scopes         text[],
  granted_organization_id text,
  token_expires_at       timestamptz(3),
  check ((state in ('approved', 'redeemed')) = (token_id is not null)),
  check ((token_id is null) = (granted_scopes is null))
);
create index device_requests_by_expiry on device_requests (expires_at);
create index device_requests_by_client on device_requests (client_key, expires_at);
create index device_requests_approved on device_requests (decided_by) where state = 'approved';

grant select, insert, update, delete on device_requests to svc_api;
