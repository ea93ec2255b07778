#!/bin/sh
# Makes the files that the Secrets of this overlay are from, once: what is there stays. Keep them; git ignores them.
#   make-secrets.sh [folder]      by default secrets/, beside this script
set -eu
umask 077
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
cd "$folder"
host=svc-database.svc-system.svc
query='sslmode=verify-full&sslrootcert=/etc/svc/database/ca.crt'
password() { openssl rand -hex 20 | tr -d '\n'; }

[ -s master-key ] || openssl rand -base64 32 | tr -d '\n' > master-key
[ -s owner-password ] || password > owner-password
[ -s password ] || password > password
printf 'postgres://svc_owner:%s@%s:5432/svc?%s' "$(cat owner-password)" "$host" "$query" > owner-url
printf 'postgres://svc_api:%s@%s:5432/svc?%s' "$(cat password)" "$host" "$query" > url
if [ ! -s tls.crt ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 3650 -subj /CN=svc-database 2>/dev/null
  openssl req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj "/CN=$host" 2>/dev/null
  printf 'subjectAltName=DNS:%s,DNS:%s.cluster.local\n' "$host" "$host" > names
  openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile names -out tls.crt 2>/dev/null
  rm -f ca.key ca.srl tls.csr names
fi
