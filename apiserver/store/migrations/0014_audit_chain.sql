-- Why: each audit event carries a hash over itself and the one before, so that a change of an old one shows.
-- Locks: audit tables, for as long as the hashes of what is there take. Breaking: no.
alter table audit_heads add column last_hash bytea;
alter table audit_events add column hash bytea;
alter table account_events add column hash bytea;

-- What a hash is made over; the events of accounts are those of the empty organization. `audit-chain.ts` says the same in a
-- query of its own, so that a function that somebody replaced vouches for nothing.
create function audit_event_hash(previous bytea, e audit_events) returns bytea language sql immutable
  set search_path = pg_catalog, pg_temp as $$
  select sha256(previous || convert_to(jsonb_build_array(e.organization_id, e.id, e.actor, e.action, e.resource_kind, e.resource_id,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'))
$$;
create function account_event_hash(previous bytea, e account_events) returns bytea language sql immutable
  set search_path = pg_catalog, pg_temp as $$
  select sha256(previous || convert_to(jsonb_build_array('', e.id, e.type, e.user_id, e.email, e.client_ip, e.user_agent,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'))
$$;
-- What the first event of an organization follows.
create function first_audit_hash(organization_id text) returns bytea language sql immutable
  set search_path = pg_catalog, pg_temp as $$ select sha256(convert_to('svc audit ' || organization_id, 'UTF8')) $$;

alter table audit_events disable trigger audit_events_append_only;
alter table account_events disable trigger account_events_append_only;
do $$
declare
  previous bytea;
  head text := null;
  event audit_events;
  account account_events;
begin
  for event in select * from audit_events order by organization_id, id loop
    if head is distinct from event.organization_id then
      head := event.organization_id;
      previous := first_audit_hash(head);
    end if;
    previous := audit_event_hash(previous, event);
    update audit_events set hash = previous where organization_id = event.organization_id and id = event.id;
    update audit_heads set last_hash = previous where organization_id = event.organization_id;
  end loop;
  previous := first_audit_hash('');
  for account in select * from account_events order by id loop
    previous := account_event_hash(previous, account);
    update account_events set hash = previous where id = account.id;
    update audit_heads set last_hash = previous where organization_id = '';
  end loop;
end $$;
alter table audit_events enable always trigger audit_events_append_only;
alter table account_events enable always trigger account_events_append_only;
alter table audit_events alter column hash set not null, add check (length(hash) = 32);
alter table account_events alter column hash set not null, add check (length(hash) = 32);

drop function next_audit_id(text) cascade;
-- Takes the head's lock, which is held until the commit.
create function next_audit_link(head_id text, out id bigint, out previous bytea) language sql security definer
  set search_path = pg_catalog, pg_temp as $$
  insert into public.audit_heads as head (organization_id, last_id) values (head_id, 1)
    on conflict (organization_id) do update set last_id = head.last_id + 1
    returning last_id, coalesce(last_hash, public.first_audit_hash(head_id))
$$;
revoke execute on function next_audit_link from public;

create or replace function number_audit_event() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  link record;
begin
  if new.id is not null or new.occurred_at is not null or new.hash is not null then
    raise exception 'Number, time and hash of an audit event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  link := public.next_audit_link(new.organization_id);
  new.id := link.id;
  new.occurred_at := clock_timestamp();
  new.hash := public.audit_event_hash(link.previous, new);
  update public.audit_heads set last_hash = new.hash where organization_id = new.organization_id;
  return new;
end $$;
create or replace function number_account_event() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  link record;
begin
  if new.id is not null or new.occurred_at is not null or new.hash is not null then
    raise exception 'Number, time and hash of an account event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  link := public.next_audit_link('');
  new.id := link.id;
  new.occurred_at := clock_timestamp();
  new.hash := public.account_event_hash(link.previous, new);
  update public.audit_heads set last_hash = new.hash where organization_id = '';
  return new;
end $$;

grant select on audit_heads to svc_api;
