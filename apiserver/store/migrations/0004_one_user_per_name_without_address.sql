-- Why: an account that no mail reaches (the local operator of a single box) is known by its name. Two of one name meant
-- that a lost first token made a second operator, who was member of nothing.
-- Locks: a short exclusive one on users. Breaking: no. Of accounts that share a name the oldest one, which is the owner of
-- what was made first, keeps it; tokens stay as they are.
update users u set name = u.name || ' ' || u.user_id
  where u.email is null and exists (
    select from users o where o.email is null and o.name = u.name and (o.created_at, o.user_id) < (u.created_at, u.user_id));
create unique index users_by_name_without_address on users (name) where email is null;
