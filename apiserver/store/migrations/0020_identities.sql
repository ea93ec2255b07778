-- Why: accounts that an identity provider knows: their issuer and subject there, and nothing else, say who they are.
-- Locks: a short exclusive one on users. Breaking: no.
alter table users
  add column issuer  text,
  add column subject text,
  -- What audit events name them by, where that is not user:<id>.
  add column actor   text,
  add constraint users_identity check ((issuer is null) = (subject is null));
create unique index users_by_identity on users (issuer, subject) where issuer is not null;

-- Of accounts that no mail reaches, those alone are known by their name that nothing else tells apart.
drop index users_by_name_without_address;
create unique index users_by_name_without_address on users (name) where email is null and issuer is null;
