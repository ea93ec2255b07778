-- Why: a server with the wrong master key says so at its start, before it seals anything that no other can open.
-- Locks: none of what serves; a new table only. Breaking: no.
create table seal_canary (
  one_row boolean primary key default true check (one_row),
  sealed  text not null
);

grant select, insert, update on seal_canary to svc_api;
