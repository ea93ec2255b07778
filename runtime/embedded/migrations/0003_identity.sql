-- Why: a store that was emptied or swapped must not be taken for one in which everything was deleted.
-- Locks: none that matter. Breaking: no. Whoever asks first gives the identity, so that copies of an unused store differ.
create table store_identity (
  one_row  boolean primary key default true check (one_row),
  identity uuid    not null
);
