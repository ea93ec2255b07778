#!/usr/bin/env bash
# make test and make verify: every *.test.ts that needs no cluster; FULL=1 asks for full n.
# Arguments are files to run instead: *.cluster.test.ts and *.node.test.ts (which make e2e runs) find their cluster by testkit/kubernetes/cluster.ts.
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  mapfile -t files < <(find lib crds runtime operator apiserver box testkit tools e2e charts images -name '*.test.ts' -not -name '*.cluster.test.ts' -not -name '*.node.test.ts' -not -path '*/node_modules/*' | sort)
else
  files=("$@")
fi
exec mocha "${files[@]}"
