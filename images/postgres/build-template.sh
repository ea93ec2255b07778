#!/bin/sh
# Makes the template at the image's build: initdb, the statements of template.sql, a clean stop, one compressed file.
set -eu
target=$1
work=$(mktemp -d)
chown 999:999 "$work"
as_postgres() { setpriv --reuid=999 --regid=999 --clear-groups -- "$@"; }
as_postgres initdb --pgdata="$work/data" --username=postgres --data-checksums --locale-provider=builtin --locale=C.UTF-8 \
  --encoding=UTF8 --auth-local=peer --auth-host=scram-sha-256 --no-sync --no-instructions
as_postgres pg_ctl --pgdata="$work/data" --wait --silent --log="$work/log" \
  --options="-c listen_addresses= -c unix_socket_directories=$work -c fsync=off -c password_encryption=scram-sha-256" start
as_postgres psql --host="$work" --username=postgres --dbname=postgres --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
  --file=/build/template.sql
as_postgres pg_ctl --pgdata="$work/data" --wait --silent --mode=fast stop
pg_controldata "$work/data" | grep -q 'cluster state: *shut down$'
# Configuration comes from the operator alone.
rm -f "$work/data/postmaster.opts" "$work/data/postgresql.auto.conf" "$work/data/pg_hba.conf" "$work/data/pg_ident.conf"
: > "$work/data/postgresql.conf"
: > "$work/data/postgresql.auto.conf"
chown 999:999 "$work/data/postgresql.conf" "$work/data/postgresql.auto.conf"
chmod 0600 "$work/data/postgresql.conf" "$work/data/postgresql.auto.conf"
tar --create --directory="$work/data" --owner=999 --group=999 . | zstd -19 --quiet -o "$target"
rm -rf "$work"
