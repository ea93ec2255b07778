-- Why: PATCH and renew answer 200 only once the resource store holds the change, and each once per Idempotency-Key however
-- often it is repeated or a process dies. Both are `update` intents now: with the call that asked, its key, and the answer
-- that is written in the transaction that records the effect. `renewals`, a second mechanism of the same kind, goes.
-- Locks: a short exclusive one on intents (no rewrite). Breaking: yes, renew fails on API servers of the version before.
alter table intents
  -- {actor, action, metadata} of the audit event that its effect leaves; null for a request, whose command wrote it.
  add column call jsonb,
  add column scope_hash bytea,
  add column key_hash bytea,
  -- The body that its callers are answered.
  add column answer bytea;
create index intents_by_key on intents (scope_hash, key_hash) where key_hash is not null;
drop table renewals;
