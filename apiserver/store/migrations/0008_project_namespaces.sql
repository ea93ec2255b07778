-- Why: a deleted project's namespace is removed by whoever dispatches, after the commit; the wish must not be lost.
-- Locks: projects, for the time of a catalog change. Breaking: no.
alter table projects add column remove_namespace boolean not null default false;
create index projects_leaving on projects (deleted_at) where remove_namespace;
