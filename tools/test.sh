#!/usr/bin/env bash
# make test and make verify: every *.test.ts; FULL=1 asks for full n. Arguments narrow the files.
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  mapfile -t files < <(find lib crds runtime operator apiserver box testkit tools e2e -name '*.test.ts' -not -path '*/node_modules/*' | sort)
else
  files=("$@")
fi
exec mocha "${files[@]}"
