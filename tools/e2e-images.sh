#!/usr/bin/env bash
# Part of make e2e: builds what the pods run, and puts it on the nodes with $E2E_LOAD_IMAGE, unless that is empty.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${E2E_LOAD_IMAGE:-}" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SAVE=$work/images tools/images.sh >&2
# The same with another version's label: what tests of upgrades go to.
SAVE=$work/next TAG=next POSTGRES_TAG=17-next BUILD_FLAGS="${BUILD_FLAGS:-} --label org.opencontainers.image.version=next" tools/images.sh >&2
for archive in "$work"/images/*.tar "$work"/next/*.tar; do
  echo "== loading ${archive#"$work"/}" >&2
  $E2E_LOAD_IMAGE "$archive" >&2
  rm "$archive"
done
