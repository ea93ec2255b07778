-- Why: remembers which resource store these rows are about; see apiserver/store/bound-store.ts.
-- Locks: none that matter. Breaking: no.
create table bound_store (
  one_row  boolean     primary key default true check (one_row),
  identity text        not null,
  bound_at timestamptz not null default now()
);
grant select, insert on bound_store to svc_api;
