-- Why: the projector must tell "our write is not visible yet" from "somebody else overwrote it". With the generation that
-- the store answered at dispatch, an intent's effect is visible in a resource exactly when its generation reached that.
-- Locks: a short exclusive one on intents (no rewrite). Breaking: no.
alter table intents add column generation bigint;
