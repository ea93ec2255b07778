-- Why: tokens and API keys that ended are forgotten after 30 days, with what they were used for.
-- Locks: token_events and tokens, for the time of a check of their rows and of an index; api_keys for an index. Breaking: no.
alter table token_events drop constraint token_events_token_id_fkey,
  add constraint token_events_token_id_fkey foreign key (token_id) references tokens on delete cascade;
-- What never ends is in neither: least() of two nulls is null.
create index tokens_by_end on tokens (least(revoked_at, expires_at)) where least(revoked_at, expires_at) is not null;
create index api_keys_by_end on api_keys (revoked_at) where revoked_at is not null;

grant delete on tokens, api_keys to svc_api;
