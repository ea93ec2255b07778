#!/bin/sh
# Before Postgres starts: a cluster, if the volume never held one, and the roles and the database of the control plane with
# the passwords of the Secret. Changes nothing else.
set -eu
umask 0077
volume=/var/lib/postgresql/data
data=$volume/pgdata

# Two servers on one folder destroy it.
exec 9>"$volume/.svc-lock"
flock --exclusive --timeout 60 9 || { echo 'FATAL:  another Postgres is using this volume' >&2; exit 75; }

if [ ! -s "$data/PG_VERSION" ]; then
  if [ -e "$data" ] && [ -n "$(ls -A "$data")" ]; then
    echo 'FATAL:  the folder of the data holds files but no cluster; it is not made anew' >&2
    exit 66
  fi
  # Made elsewhere, written out, then named: a crash on the way leaves something that is never taken for whole.
  rm -rf "$data".new
  initdb --pgdata="$data.new" --username=postgres --data-checksums --locale-provider=builtin --locale=C.UTF-8 --encoding=UTF8 \
    --auth-local=peer --auth-host=scram-sha-256 --no-instructions
  if [ -e "$data" ]; then rmdir "$data"; fi
  mv -T "$data.new" "$data"
  sync --file-system "$volume"
fi
chmod 0700 "$data"

# A server that nobody reaches: statements are the shell's standard input, so that no password is in a list of processes.
started=$(mktemp -d)
pg_ctl --pgdata="$data" --silent --wait --timeout=3600 --log="$started/log" \
  --options="-c listen_addresses= -c unix_socket_directories=$started -c hba_file=/etc/svc/config/pg_hba.conf -c archive_mode=off" start \
  || { cat "$started/log" >&2; exit 1; }
{
  cat <<'SQL'
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\getenv serving_password SERVING_PASSWORD
set log_statement = none;
set log_min_error_statement = panic;
set password_encryption = 'scram-sha-256';
select format('create role %I login', name) from unnest(array['svc_owner', 'svc_api']) as name
  where not exists (select from pg_roles where rolname = name) \gexec
alter role svc_owner password :'owner_password';
alter role svc_api password :'serving_password';
select 'create database svc owner svc_owner' where not exists (select from pg_database where datname = 'svc') \gexec
revoke all on database postgres from public;
revoke all on database template1 from public;
revoke all on database svc from public;
grant connect on database svc to svc_api;
SQL
} | psql --host="$started" --username=postgres --dbname=postgres --no-psqlrc --quiet --tuples-only || { cat "$started/log" >&2; exit 1; }
pg_ctl --pgdata="$data" --silent --wait --timeout=600 --mode=fast stop
