-- Why: sign-in by a link or a code in a letter, and invitations.
-- Locks: users, for the moment in which a column is added. Breaking: no.

-- Since when it is known that the account's user reads its mail.
alter table users add column email_verified_at timestamptz(3);

-- One at a time for an address: a new one replaces it.
create table magic_links (
  email        text primary key check (email = lower(email)),
  token_digest bytea not null unique check (length(token_digest) = 32),
  -- Keyed: six digits are no secret to whoever has a plain digest of them.
  code_digest  bytea not null check (length(code_digest) = 32),
  guesses      integer not null default 0,
  created_at   timestamptz(3) not null default now(),
  expires_at   timestamptz(3) not null
);
create index magic_links_by_expiry on magic_links (expires_at);

-- Open ones: those that were accepted, revoked or replaced are in the audit log.
create table invitations (
  id              text primary key check (id ~ '^inv_[0-9a-z]{20,40}$'),
  organization_id text not null references organizations,
  email           text not null check (email = lower(email)),
  role            text not null check (role in ('viewer', 'developer', 'admin', 'owner')),
  invited_by      text not null references users,
  token_digest    bytea not null unique check (length(token_digest) = 32),
  -- The link was told to the address alone: who has it reads its mail.
  by_mail         boolean not null,
  created_at      timestamptz(3) not null default now(),
  expires_at      timestamptz(3) not null,
  unique (organization_id, email)
);
create index invitations_by_organization on invitations (organization_id, created_at, id);
create index invitations_by_expiry on invitations (expires_at);

grant select, insert, update, delete on magic_links, invitations to svc_api;
