-- Why: lists the operations of an environment by its path, newest first.
-- Locks: writes to operations wait while the index is built. Breaking: no.
create index operations_by_path on operations (organization_id, project_id, environment_id, created_at desc, id desc);
