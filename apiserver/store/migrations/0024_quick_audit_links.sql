-- Why: whoever writes an event holds the lock of its chain until the commit, and half of the time that an event took went to its
-- hash and its number: functions in SQL are parsed and planned anew in every statement that calls them, those in PL/pgSQL once
-- in a session. They compute what they did.
-- Locks: none that matter; functions only. Breaking: no.
create or replace function audit_event_hash(previous bytea, e audit_events) returns bytea language plpgsql immutable
  set search_path = pg_catalog, pg_temp as $$
begin
  return sha256(previous || convert_to(jsonb_build_array(e.organization_id, e.id, e.actor, e.action, e.resource_kind, e.resource_id,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'));
end $$;
create or replace function account_event_hash(previous bytea, e account_events) returns bytea language plpgsql immutable
  set search_path = pg_catalog, pg_temp as $$
begin
  return sha256(previous || convert_to(jsonb_build_array('', e.id, e.type, e.user_id, e.email, e.client_ip, e.user_agent,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'));
end $$;
-- Takes the head's lock, which is held until the commit.
create or replace function next_audit_link(head_id text, out id bigint, out previous bytea) language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
begin
  insert into public.audit_heads as head (organization_id, last_id) values (head_id, 1)
    on conflict (organization_id) do update set last_id = head.last_id + 1
    returning head.last_id, coalesce(head.last_hash, public.first_audit_hash(head_id)) into id, previous;
end $$;
