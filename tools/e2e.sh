#!/usr/bin/env bash
# make e2e: every test that needs a Kubernetes cluster, on the cluster of $KUBECONFIG, else on one that kind makes for it.
#   KUBECONFIG                   a cluster with a node that runs pods; what the run installs there is removed again
#   SERVICE_TEST_API_KUBECONFIG  another one for what needs no running pods; by default the same
#   E2E_LOAD_IMAGE               the command that puts a docker-archive on the nodes; the file's path is added to it.
#                                By default that of kind; empty: the images are there already, and are not built:
#                                svc-control-plane:dev and svc-postgres:17, and what is upgraded to, :next and :17-next
#   E2E_USED_CLUSTER=1           on a cluster that has environments too, which are deleted
#   E2E_KEEP=1                   leaves what was installed where it is, to look at; not on a kind cluster, which goes
# Arguments narrow the files.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$*" >&2; }
work=$(mktemp -d)
kind_cluster=
# What is in no namespace and by its name the product's or its tests', guards before the definitions that they guard.
of_ours() { # kubeconfig
  kubectl --kubeconfig "$1" get --ignore-not-found --output name \
    validatingadmissionpolicybindings,validatingadmissionpolicies,customresourcedefinitions,clusterrolebindings,clusterroles,priorityclasses |
    grep -E '/(svc-|[a-z.-]*svc\.internal$)' || true
}
# Takes away what was not there when the run began; a cluster that had the product's definitions keeps them.
clear_away() { # kubeconfig file
  local made
  made=$(of_ours "$1" | grep -vxF -f "$2" || true)
  [ -n "$made" ] || return 0
  # A guard that is taken away is in force for a moment more.
  grep ^customresourcedefinition <<<"$made" | xargs -rI{} kubectl --kubeconfig "$1" annotate --overwrite {} svc.internal/allow-deletion=true >&2 || true
  xargs kubectl --kubeconfig "$1" delete --timeout=60s <<<"$made" >&2 ||
    say "left on the cluster of $1: $(xargs <<<"$made")"
}
finish() {
  jobs -rp | xargs -r kill
  if [ -z "$kind_cluster" ] && [ "${E2E_KEEP:-}" != 1 ]; then
    [ ! -f "$work/there" ] || clear_away "$KUBECONFIG" "$work/there"
    [ ! -f "$work/there-api" ] || clear_away "$SERVICE_TEST_API_KUBECONFIG" "$work/there-api"
  fi
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

of_ours "$KUBECONFIG" >"$work/there"
[ -z "${SERVICE_TEST_API_KUBECONFIG:-}" ] || of_ours "$SERVICE_TEST_API_KUBECONFIG" >"$work/there-api"

if [ -n "$load" ]; then
  say "building the images"
  SAVE=$work/images tools/images.sh >&2
  # The same with another version's label: what tests of upgrades go to.
  SAVE=$work/next TAG=next POSTGRES_TAG=17-next BUILD_FLAGS="${BUILD_FLAGS:-} --label org.opencontainers.image.version=next" tools/images.sh >&2
  for archive in "$work"/images/*.tar "$work"/next/*.tar; do
    say "loading ${archive#"$work"/}"
    $load "$archive" >&2
    rm "$archive"
  done
fi

# Charts are to suit both majors; their tests say which one is missing.
SERVICE_TEST_HELMS=${SERVICE_TEST_HELMS:-$(tools/second-helm.sh || true)}
export SERVICE_TEST_HELMS

# Where the audit logs end now: at the end of the run what they say since then is judged.
length_of() { [ ! -f "${1:-}" ] || stat --format %s "$1"; }
SERVICE_TEST_AUDIT_BEGIN=$(length_of "${SERVICE_TEST_AUDIT_LOG:-}")
SERVICE_TEST_API_AUDIT_BEGIN=$(length_of "${SERVICE_TEST_API_AUDIT_LOG:-}")
# One cluster for both has one log.
if [ -z "${SERVICE_TEST_API_AUDIT_LOG:-}" ]; then SERVICE_TEST_API_AUDIT_BEGIN=$SERVICE_TEST_AUDIT_BEGIN; fi
export SERVICE_TEST_AUDIT_BEGIN SERVICE_TEST_API_AUDIT_BEGIN

named() { find "$@" | sort | tr '\n' ' '; }

if [ $# -gt 0 ]; then
  mocha "$@"
  exit
fi
# What brings its own operator has the cluster for itself: beside the rest where that is another one, else before it. Of the rest
# first what needs pods, last what installs the charts, for an installed operator would take part in everything else; at the very
# end what looks back at the whole run. An operator cares for every environment, and pods are played for every namespace: where no
# node is, what brings either is one mocha, after the others (operator/host brings neither: it plays its own namespaces alone).
beside=--
[ "${SERVICE_TEST_API_KUBECONFIG:-$KUBECONFIG}" = "$KUBECONFIG" ] || beside=--beside
rooms=(crds runtime operator/host apiserver testkit tools)
mapfile -t alone < <(find "${rooms[@]}" -name '*.node.test.ts' | sort)
node tools/lanes.ts \
  "$(named "${rooms[@]}" -name '*.cluster.test.ts')" "$(named charts -name '*.cluster.test.ts')" \
  -- "$(named operator e2e -name '*.cluster.test.ts' -not -path 'operator/host/*' -not -path '*/whole-run/*')" \
  $beside "${alone[@]}" \
  -- e2e/kubernetes/operator-crashes.node.test.ts \
  -- "$(named images charts -name '*.node.test.ts')" \
  -- "$(named e2e -name '*.node.test.ts' -not -path '*/whole-run/*' -not -name operator-crashes.node.test.ts) $(named e2e/kubernetes/whole-run -name '*.node.test.ts')" \
  --last "$(named e2e/kubernetes/whole-run -name '*.cluster.test.ts')"
