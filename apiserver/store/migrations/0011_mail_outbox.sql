-- Why: letters are kept in the transaction of what they are about, and leave after it.
-- Locks: none of what serves; a new table only. Breaking: no.
create table mail_outbox (
  id              text primary key check (id ~ '^let_[0-9a-z]{20,40}$'),
  kind            text not null check (kind in ('magic_link', 'magic_link_notice', 'password_reset', 'invitation')),
  -- What it is about, so that one that is out of date can be withdrawn: an address, or an id.
  about           text not null,
  recipient       text not null,
  -- What the letter says that is no secret.
  parameters      jsonb not null,
  -- Links and codes, sealed. Gone once the letter is.
  sealed_secret   text,
  -- unwanted: nobody is to get it; it is kept so that a request does the same whoever has an account.
  state           text not null check (state in ('waiting', 'sent', 'given_up', 'withdrawn', 'unwanted')),
  attempts        integer not null default 0,
  next_attempt_at timestamptz(3) not null,
  -- After that nobody needs it.
  expires_at      timestamptz(3) not null,
  -- Who delivers it at the moment: nobody else does until then.
  lease           text,
  leased_until    timestamptz(3),
  last_error      text,
  created_at      timestamptz(3) not null default now(),
  settled_at      timestamptz(3),
  check (state = 'waiting' or sealed_secret is null),
  check (state = 'waiting' or lease is null)
);
create index mail_outbox_waiting on mail_outbox (next_attempt_at) where state = 'waiting';
create index mail_outbox_about on mail_outbox (kind, about) where state = 'waiting';
create index mail_outbox_by_age on mail_outbox (created_at);

grant select, insert, update, delete on mail_outbox to svc_api;
