#!/usr/bin/env bash
# make test and make verify: every *.test.ts that needs no cluster; FULL=1 asks for full n.
# Arguments are files to run instead: *.cluster.test.ts and *.node.test.ts (which make e2e runs) find their cluster by testkit/kubernetes/cluster.ts.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then exec mocha "$@"; fi
named() {
  find "$@" -name '*.test.ts' -not -name '*.cluster.test.ts' -not -name '*.node.test.ts' -not -path '*/node_modules/*' | sort | tr '\n' ' '
}
# Whole boxes, and models that ask two replicas one thing after the other, wait more than they work: the rest goes on beside.
parts=(lib crds runtime operator apiserver testkit tools charts images)
exec node tools/lanes.ts "$(named "${parts[@]}" -not -name '*.model.test.ts')" "$(named box e2e)" "$(named "${parts[@]}" -name '*.model.test.ts')"
