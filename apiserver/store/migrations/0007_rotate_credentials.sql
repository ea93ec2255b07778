-- Why: passwords can be rotated on request: one more kind of operation, and the verb that carries it.
-- Locks: operations and intents, for the time of a look at their rows. Breaking: no.
alter table operations drop constraint operations_kind_check,
  add constraint operations_kind_check check (kind in ('create_environment', 'delete_environment', 'suspend_environment',
    'resume_environment', 'rotate_credentials', 'run_migrations', 'import'));
alter table intents drop constraint intents_verb_check,
  add constraint intents_verb_check check (verb in ('create', 'suspend', 'resume', 'rotate', 'delete', 'update'));
