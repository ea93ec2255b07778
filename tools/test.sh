#!/usr/bin/env bash
# make test and make verify: every *.test.ts that needs no cluster; FULL=1 asks for full n.
# Arguments are files to run instead: *.cluster.test.ts and *.node.test.ts (which make e2e runs) find their cluster by testkit/kubernetes/cluster.ts.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then exec mocha "$@"; fi
named() {
  find "$@" -name '*.test.ts' -not -name '*.cluster.test.ts' -not -name '*.node.test.ts' -not -path '*/node_modules/*' | sort | tr '\n' ' '
}
# Whole boxes wait more than they work, so what tests parts of them goes on beside.
exec node tools/lanes.ts "$(named lib crds runtime operator apiserver testkit tools charts images)" "$(named box e2e)"
