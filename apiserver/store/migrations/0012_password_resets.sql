-- Why: links with which somebody sets a new password, issued by an administrator or sent by mail.
-- Locks: none of what serves; a new table only. Breaking: no.
create table password_resets (
  -- One each: a new link replaces the one before.
  user_id      text primary key references users,
  digest       bytea not null unique check (length(digest) = 32),
  token_prefix text not null,
  -- Who issued it; null: it was sent by mail.
  issued_by    text references users,
  created_at   timestamptz(3) not null default now(),
  expires_at   timestamptz(3) not null
);

grant select, insert, update, delete on password_resets to svc_api;
