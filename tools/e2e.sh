#!/usr/bin/env bash
# make e2e: every test that needs a Kubernetes cluster, on the cluster of $KUBECONFIG, else on one that kind makes for it.
#   KUBECONFIG                   a cluster with a node that runs pods; what the run installs there is removed again
#   SERVICE_TEST_API_KUBECONFIG  another one for what needs no running pods; by default the same
#   SERVICE_TEST_SECOND_API_KUBECONFIG  one more such, for the longest of that to run beside the rest
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
# Clusters beside that of the node.
more=()
for cluster in "${SERVICE_TEST_API_KUBECONFIG:-}" "${SERVICE_TEST_SECOND_API_KUBECONFIG:-}"; do
  [ -z "$cluster" ] || more+=("$cluster")
done
# Where it is noted what a cluster had when the run began.
note_of() { echo "$work/there-${1//\//_}"; } # kubeconfig
# What is by its name the product's or its tests', or a volume of such a namespace: guards first, then what they guard. Namespaces go with
# all that is in them, so of these only names that nobody else makes.
NAMESPACES='svc-system|svc-another-namespace|svc-[a-z0-9-]+-[0-9a-f]{10}|t-[a-z0-9-]+-[0-9a-f]{10}'
of_ours() { # kubeconfig
  kubectl --kubeconfig "$1" get --ignore-not-found --output name \
    validatingadmissionpolicybindings,validatingadmissionpolicies,namespaces,customresourcedefinitions,clusterrolebindings,clusterroles,priorityclasses |
    grep -E "^namespace/($NAMESPACES)\$|^[^n].*/(svc-|[a-z.-]*svc\.internal\$)" || true
  kubectl --kubeconfig "$1" get persistentvolumes --output 'jsonpath={range .items[*]}{.spec.claimRef.namespace} {.metadata.name}{"\n"}{end}' |
    sed -nE "s#^($NAMESPACES) #persistentvolume/#p"
}
# Takes away what was not there when the run began; a cluster that had the product's definitions keeps them.
clear_away() { # kubeconfig file
  local made left name on=(kubectl --kubeconfig "$1")
  of_kind() { grep "^$1[./]" <<<"$made" || true; }
  made=$(of_ours "$1" | grep -vxF -f "$2" || true)
  [ -n "$made" ] || return 0
  of_kind 'validatingadmission[a-z]*' | xargs -r "${on[@]}" delete --timeout=60s >&2 || true
  for name in $(of_kind namespace | cut -d/ -f2); do
    "${on[@]}" label namespace "$name" svc.internal/protected- >/dev/null 2>&1 || true
    for held in environments.svc.internal deletionrecords.svc.internal; do
      "${on[@]}" --namespace "$name" get "$held" --output name 2>/dev/null |
        xargs -rI{} "${on[@]}" --namespace "$name" patch {} --type=merge --patch '{"metadata":{"finalizers":null}}' >/dev/null 2>&1 || true
    done
    "${on[@]}" delete namespace "$name" --ignore-not-found --wait=false >/dev/null || true
    # Played pods have no kubelet to see them off.
    "${on[@]}" --namespace "$name" delete pods --all --force --grace-period=0 --wait=false >/dev/null 2>&1 || true
  done
  of_kind namespace | xargs -r "${on[@]}" wait --for=delete --timeout=60s >/dev/null 2>&1 || true
  # Who provisioned a volume removes it with what is on disk; a played one has nobody.
  for name in $(of_kind persistentvolume); do
    "${on[@]}" patch "$name" --type=merge --patch '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}' >/dev/null 2>&1 || true
  done
  of_kind persistentvolume | xargs -r "${on[@]}" wait --for=delete --timeout=10s >/dev/null 2>&1 || true
  of_kind persistentvolume | xargs -r "${on[@]}" delete --ignore-not-found --timeout=60s >/dev/null || true
  # A guard that is taken away is in force for a moment more.
  of_kind customresourcedefinition | xargs -rI{} "${on[@]}" annotate --overwrite {} svc.internal/allow-deletion=true >&2 || true
  grep -vE '^(namespace|persistentvolume|validatingadmission)' <<<"$made" | xargs -r "${on[@]}" delete --timeout=60s >&2 || true
  left=$(of_ours "$1" | grep -vxF -f "$2" || true)
  [ -z "$left" ] || say "left on the cluster of $1: $(xargs <<<"$left")"
}
finish() {
  jobs -rp | xargs -r kill
  if [ -z "$kind_cluster" ] && [ "${E2E_KEEP:-}" != 1 ]; then
    for cluster in "${KUBECONFIG:-}" "${more[@]}"; do
      [ ! -f "$(note_of "$cluster")" ] || clear_away "$cluster" "$(note_of "$cluster")"
    done
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
  for cluster in "${more[@]}"; do refuse_used "$cluster"; done
fi

for cluster in "$KUBECONFIG" "${more[@]}"; do of_ours "$cluster" >"$(note_of "$cluster")"; done

# Charts are to suit both majors; their tests say which one is missing.
SERVICE_TEST_HELMS=${SERVICE_TEST_HELMS:-$(tools/second-helm.sh || true)}
export SERVICE_TEST_HELMS

# Where the audit logs end now: at the end of the run what they say since then is judged.
end_of() { [ ! -f "${1:-}" ] || stat --format %i:%s "$1"; }
SERVICE_TEST_AUDIT_BEGIN=$(end_of "${SERVICE_TEST_AUDIT_LOG:-}")
SERVICE_TEST_API_AUDIT_BEGIN=$(end_of "${SERVICE_TEST_API_AUDIT_LOG:-}")
SERVICE_TEST_SECOND_API_AUDIT_BEGIN=$(end_of "${SERVICE_TEST_SECOND_API_AUDIT_LOG:-}")
# One cluster for both has one log.
if [ -z "${SERVICE_TEST_API_AUDIT_LOG:-}" ]; then SERVICE_TEST_API_AUDIT_BEGIN=$SERVICE_TEST_AUDIT_BEGIN; fi
export SERVICE_TEST_AUDIT_BEGIN SERVICE_TEST_API_AUDIT_BEGIN SERVICE_TEST_SECOND_API_AUDIT_BEGIN

named() { find "$@" | sort | tr '\n' ' '; }

export E2E_LOAD_IMAGE=$load
if [ $# -gt 0 ]; then
  tools/e2e-images.sh
  mocha "$@"
  exit
fi
# What brings its own operator has the cluster for itself: beside the rest where that is another one, else before it. The images are
# built meanwhile, for only pods need them. Of the rest first what needs pods, beside the one operator that changes nothing there but what
# it owns; last what installs the charts, for an installed operator would take part in everything else; at the very
# end what looks back at the whole run. An operator cares for every environment, and pods are played for every namespace: where no
# node is, what brings either is one mocha, after the others (operator/host brings neither: it plays its own namespaces alone).
beside=--
[ "${SERVICE_TEST_API_KUBECONFIG:-$KUBECONFIG}" = "$KUBECONFIG" ] || beside=--beside
rooms=(crds runtime operator/host apiserver testkit tools)
mapfile -t alone < <(find "${rooms[@]}" -name '*.node.test.ts' | sort)
played() { named operator e2e -name '*.cluster.test.ts' -not -path 'operator/host/*' -not -path '*/whole-run/*' "$@"; }
longest=e2e/kubernetes/operator-crashes.cluster.test.ts
second=()
if [ -n "${SERVICE_TEST_SECOND_API_KUBECONFIG:-}" ]; then
  second=(--beside --with "SERVICE_TEST_API_KUBECONFIG=$SERVICE_TEST_SECOND_API_KUBECONFIG"
    --with "SERVICE_TEST_API_AUDIT_LOG=${SERVICE_TEST_SECOND_API_AUDIT_LOG:-}" $longest)
fi
node tools/lanes.ts \
  "$(named "${rooms[@]}" -name '*.cluster.test.ts')" "$(named charts -name '*.cluster.test.ts')" \
  -- "$(played ${second[@]:+-not -path "$longest"})" "${second[@]}" \
  $beside --first tools/e2e-images.sh e2e/kubernetes/operator-crashes.node.test.ts "${alone[@]}" \
  -- "$(named images charts -name '*.node.test.ts')" \
  -- "$(named e2e -name '*.node.test.ts' -not -path '*/whole-run/*' -not -name operator-crashes.node.test.ts) $(named e2e/kubernetes/whole-run -name '*.node.test.ts')" \
  --last "$(named e2e/kubernetes/whole-run -name '*.cluster.test.ts')"
