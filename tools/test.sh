#!/usr/bin/env bash
# make test: every *.test.ts that needs no cluster, with a small n. make verify, FULL=1: those that have a larger one, with that.
# Arguments are files to run instead: *.cluster.test.ts and *.node.test.ts (which make e2e runs) find their cluster by testkit/kubernetes/cluster.ts.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then exec mocha "$@"; fi
if [ "${FULL:-}" = 1 ]; then of_them=$(node tools/sized-tests.ts); fi
chosen() { if [ "${FULL:-}" = 1 ]; then grep -Fx "$of_them" || true; else cat; fi; }
named() {
  find "$@" -name '*.test.ts' -not -name '*.cluster.test.ts' -not -name '*.node.test.ts' -not -path '*/node_modules/*' | chosen | sort | tr '\n' ' '
}
# Whole boxes, and models that ask two replicas one thing after the other, wait more than they work: the rest goes on beside, and
# planted bugs, which are one mocha after the other, as soon as a lane is free. What loads the machine as much as it can comes after
# them, so that nothing else has to wait for it.
parts=(lib crds runtime operator testkit tools charts images)
requests='apiserver/test/fuzz.test.ts'
bugs='tools/planted-bugs.test.ts'
mutations='apiserver/test/exactly-once.test.ts'
# It asks who gets in first, which is nobody's but the machine's to say where there is more to do.
siege='apiserver/test/login-siege.test.ts'
named_apart() { named "$@" $(printf -- '-not -path %s ' $requests $bugs $mutations $siege); }
# The longest first. Models are two lanes, by their names, that take as long as each other: one lane of them goes on alone when all
# else has ended, and leaves half of two processors idle.
exec node tools/lanes.ts "$(named_apart apiserver -not -name '*.model.test.ts')" \
  "$(named apiserver "${parts[@]}" -name '[!a-m]*.model.test.ts')" "$(named apiserver "${parts[@]}" -name '[a-m]*.model.test.ts')" \
  "$(named box e2e)" "$(named_apart "${parts[@]}" -not -name '*.model.test.ts')" "$bugs" \
  -- "$requests" "$mutations" -- "$siege"
