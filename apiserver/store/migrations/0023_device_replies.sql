-- Why: a device whose answer was lost asks again and gets the same token.
-- Locks: device_requests, to add columns that are empty and for an index of none of its rows. Breaking: no.
alter table device_requests
  -- The token, sealed by a key that is made of the device code; its digest alone is here. Forgotten when it may no longer be told.
  add column sealed_token bytea,
  add column told_until   timestamptz(3),
  add check ((sealed_token is null) or (state = 'redeemed' and told_until is not null));
create index device_requests_told on device_requests (told_until) where sealed_token is not null;
