-- Why: environments' passwords, sealed with a key that is not in this database.
-- Locks: none that matter, everything is new. Breaking: no.

-- The uid decides; namespace and name are for people. `version` is bound into the seal, so an older row put back does not open.
create table credentials (
  uid        text        primary key,
  namespace  text        not null,
  name       text        not null,
  version    bigint      not null,
  kid        text        not null,
  sealed     text        not null,
  updated_at timestamptz not null default now()
);
create index credentials_by_kid on credentials (kid); -- finds what a rotated key still has to be taken from

-- A sealed constant: a process whose key does not open it has the wrong key and must not write. One row.
create table seal_canary (
  one_row boolean primary key default true check (one_row),
  sealed  text    not null
);
