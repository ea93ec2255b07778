-- Why: single sign-on of organizations: the identity provider of each, sign-ins under way, the accounts that providers vouch for.
-- Locks: short exclusive ones on users, sessions and tokens. Breaking: no.
create table organization_sso (
  organization_id text primary key references organizations,
  -- Another with each change: a sign-in that began before comes to nothing. Also what the seal is bound to.
  revision        text not null unique,
  issuer          text not null,
  client_id       text not null,
  sealed_secret   text not null,
  -- What somebody becomes who signs in for the first time; null: nothing, until an admin adds them.
  default_role    text check (default_role in ('viewer', 'developer', 'admin')),
  created_at      timestamptz(3) not null default now(),
  updated_at      timestamptz(3) not null default now()
);

-- Digests alone: nonce and code verifier derive from the browser's token, which is kept nowhere.
create table sso_flows (
  state_digest     bytea primary key check (length(state_digest) = 32),
  flow_digest      bytea not null check (length(flow_digest) = 32),
  organization_id  text not null,
  revision         text not null,
  reauthenticates  boolean not null,
  expires_at       timestamptz(3) not null
);
create index sso_flows_by_expiry on sso_flows (expires_at);

-- An account of single sign-on belongs to its organization: what another organization's provider says, with the same issuer and
-- subject even, is about another account.
alter table users
  add column sso_organization_id text references organizations,
  add column sso_issuer          text,
  add column sso_subject         text,
  add constraint users_sso_identity check (
    (sso_organization_id is null) = (sso_issuer is null) and (sso_organization_id is null) = (sso_subject is null)),
  add constraint users_of_sso_alone check (sso_organization_id is null or (email is null and issuer is null and not is_operator));
create unique index users_by_sso_identity on users (sso_organization_id, sso_issuer, sso_subject)
  where sso_organization_id is not null;
drop index users_by_name_without_address;
create unique index users_by_name_without_address on users (name)
  where email is null and issuer is null and sso_organization_id is null;

-- When the provider says that it ends at the latest.
alter table sessions add column ends_at timestamptz(3);
create index sessions_by_organization on sessions (organization_id) where organization_id is not null;

-- Personal tokens of accounts of single sign-on are bound too.
alter table tokens drop constraint tokens_bound_are_agents;

grant select, insert, update, delete on organization_sso, sso_flows to svc_api;
