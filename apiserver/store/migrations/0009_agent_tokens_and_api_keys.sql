-- Why: agent tokens with scopes, what they were used for, and API keys of organizations.
-- Locks: tokens, for the time of a check of its rows. Breaking: no.
alter table tokens add constraint tokens_agents_have_scopes check ((kind = 'agent') = (scopes is not null));
alter table tokens add constraint tokens_bound_are_agents check (organization_id is null or kind = 'agent');
create index tokens_bound on tokens (organization_id, user_id) where organization_id is not null and revoked_at is null;

-- The last requests of each agent token. A ring: written many at once, cut to its newest 200.
create table token_events (
  id        bigint generated always as identity primary key,
  token_id  text not null references tokens,
  at        timestamptz(3) not null,
  method    text not null,
  path      text not null,
  status    integer not null,
  client_ip text not null
);
create index token_events_by_token on token_events (token_id, at desc, id desc);

create table api_keys (
  id              text primary key check (id ~ '^key_[0-9a-z]{20,40}$'),
  organization_id text not null references organizations,
  name            text not null,
  scopes          text[] not null check (cardinality(scopes) > 0 and scopes <@ array['read', 'deploy', 'admin']),
  digest          bytea not null unique check (length(digest) = 32),
  key_prefix      text not null,
  created_by      text not null references users,
  created_at      timestamptz(3) not null default now(),
  last_used_at    timestamptz(3),
  revoked_at      timestamptz(3)
);
create index api_keys_by_organization on api_keys (organization_id, created_at, id) where revoked_at is null;

grant select, insert, delete on token_events to svc_api;
grant select, insert, update on api_keys to svc_api;
