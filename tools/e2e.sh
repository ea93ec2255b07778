#!/usr/bin/env bash
# make e2e: every test that needs a Kubernetes cluster, on the cluster of $KUBECONFIG, else on one that kind makes for it.
#   KUBECONFIG                   a cluster with a node that runs pods; what is installed there is removed again
#   SERVICE_TEST_API_KUBECONFIG  another one for what needs no running pods; by default the same
#   E2E_LOAD_IMAGE               the command that puts a docker-archive on the nodes; the file's path is added to it.
#                                By default that of kind; empty: the images are there already, and are not built
#   E2E_USED_CLUSTER=1           on a cluster that has environments too, which are deleted
#   E2E_KEEP=1                   leaves what was installed where it is, to look at; not on a kind cluster, which goes
# Arguments narrow the files.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$*" >&2; }
work=$(mktemp -d)
kind_cluster=
finish() {
  jobs -rp | xargs -r kill
  [ -z "$kind_cluster" ] || kind delete cluster --name "$kind_cluster" >&2
  rm -rf "$work"
}
trap finish EXIT

if [ -z "${KUBECONFIG:-}" ]; then
  command -v kind >/dev/null || {
    echo "make e2e needs a Kubernetes cluster: set KUBECONFIG, or install kind (https://kind.sigs.k8s.io) and Docker" >&2
    exit 1
  }
  kind_cluster=svc-e2e
  export KUBECONFIG=$work/kubeconfig
  say "making the kind cluster $kind_cluster"
  kind create cluster --name "$kind_cluster" --config e2e/kubernetes/kind.yaml --kubeconfig "$KUBECONFIG" --wait 120s >&2
  load="kind load image-archive --name $kind_cluster"
else
  load=${E2E_LOAD_IMAGE-}
  [ -n "${E2E_LOAD_IMAGE+given}" ] || {
    echo "make e2e does not know how images get onto this cluster: set E2E_LOAD_IMAGE (empty: they are there)" >&2
    exit 1
  }
fi
for tool in kubectl helm; do
  command -v "$tool" >/dev/null || { echo "make e2e needs $tool" >&2; exit 1; }
done

# What is there of the product would be taken for the tests' own, and end with them: databases are deleted at the end.
refuse_used() {
  local found=
  found=$(kubectl --kubeconfig "$1" get namespaces --selector svc.internal/project --output name; true)
  found+=$(kubectl --kubeconfig "$1" get environments.svc.internal --all-namespaces --output name 2>/dev/null; true)
  found+=$(kubectl --kubeconfig "$1" get deployments --all-namespaces --selector app.kubernetes.io/name=svc --output name; true)
  [ -z "$found" ] || {
    echo "make e2e deletes every environment of its cluster, and $1 leads to one that is in use: $(head -n 3 <<<"$found" | xargs)" >&2
    echo "Give it a cluster of its own; or, if nothing there is worth keeping, set E2E_USED_CLUSTER=1" >&2
    exit 1
  }
}
if [ "${E2E_USED_CLUSTER:-}" != 1 ]; then
  refuse_used "$KUBECONFIG"
  [ -z "${SERVICE_TEST_API_KUBECONFIG:-}" ] || refuse_used "$SERVICE_TEST_API_KUBECONFIG"
fi

if [ -n "$load" ]; then
  say "building the images"
  SAVE=$work/images tools/images.sh >&2
  for archive in "$work"/images/*.tar; do
    say "loading ${archive##*/}"
    $load "$archive" >&2
    rm "$archive"
  done
fi

# Charts are to suit both majors; their tests say which one is missing.
SERVICE_TEST_HELMS=${SERVICE_TEST_HELMS:-$(tools/second-helm.sh || true)}
export SERVICE_TEST_HELMS

named() { find "$@" | sort | tr '\n' ' '; }

if [ $# -gt 0 ]; then
  mocha "$@"
  exit
fi
# What brings its own operator has the cluster for itself: beside the rest where that is another one, else before it. Of the rest
# first what needs pods, last what installs the charts, for an installed operator would take part in everything else; at the very
# end what looks back at the whole run.
beside=--
[ "${SERVICE_TEST_API_KUBECONFIG:-$KUBECONFIG}" = "$KUBECONFIG" ] || beside=--beside
rooms=(crds runtime operator apiserver testkit tools)
mapfile -t alone < <(find "${rooms[@]}" -name '*.node.test.ts' | sort)
node tools/lanes.ts \
  "$(named "${rooms[@]}" -name '*.cluster.test.ts') $(named e2e charts -name '*.cluster.test.ts')" \
  $beside "${alone[@]}" \
  -- e2e/kubernetes/operator-crashes.node.test.ts \
  -- "$(named images charts -name '*.node.test.ts')" \
  -- "$(named e2e -name '*.node.test.ts' -not -path '*/whole-run/*' -not -name operator-crashes.node.test.ts) $(named e2e/kubernetes/whole-run -name '*.node.test.ts')"
