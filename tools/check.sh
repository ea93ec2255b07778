#!/usr/bin/env bash
# make check: each part prints what is wrong; all parts run even when one failed.
set -u
cd "$(dirname "$0")/.."
failed=0
part() { local name=$1; shift; local start=$SECONDS; if "$@"; then echo "ok    $name ($((SECONDS - start)) s)"; else echo "FAIL  $name"; failed=1; fi; }
part types tsc -p .
part format biome check --error-on-warnings .
part lint eslint --max-warnings 0 --cache --cache-location node_modules/.cache/eslint/ .
[ -f tools/check-layers.ts ] && part layers node tools/check-layers.ts
[ -f tools/generate.ts ] && part generated node tools/generate.ts --check
part unused knip
# What tests alone use is dead: it is moved to the testkit, or tagged @public with the reason why it stands.
part 'unused in production' knip --production
exit $failed
