-- Why: what follows a session's token, digests of codes and sealed replies stay what they are while the master key changes, on
-- every replica: their keys derive from a secret of their own, which the master key only wraps.
-- Locks: none of what serves; a new table only. Breaking: no.
create table derivation_root (
  one_row boolean primary key default true check (one_row),
  sealed  text not null
);

grant select, insert, update on derivation_root to svc_api;
