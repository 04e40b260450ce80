#!/usr/bin/env bash
# Runs the end-to-end tests in the cluster of KUBECONFIG, with the image and the chart: installs the release, runs `helm test` and the
# tests that run on any cluster, uninstalls it, and checks that nothing of it blocks a write. `make e2e-kind` and `make e2e-node`
# start a cluster for it.
#
#   installed.sh IMAGE      IMAGE is the name of the image on the nodes
#
# Needs kubectl, helm and Rust.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/counts.sh
. tests/counts.sh

image=${1:?name the image, for example kube-unions:dev}
: "${KUBECONFIG:?name the kubeconfig of the cluster}"
cargo=${CARGO:-cargo}
release=kube-unions
namespace=kube-unions
# Use the kubectl on PATH, not the one of the tests' own control plane.
unset KUBEBUILDER_ASSETS KUBE_UNIONS_E2E

log() { echo "installed: $*" >&2; }
from=$SECONDS
took() {
  log "$1 took $((SECONDS - from)) s"
  from=$SECONDS
}

output=$(mktemp)
end() {
  local status=$?
  rm -f "$output"
  [ "$status" != 0 ] || return 0
  log "it failed; these are the release, its events and its logs"
  {
    kubectl --namespace "$namespace" describe all
    kubectl --namespace "$namespace" get events --sort-by .lastTimestamp
    kubectl --namespace "$namespace" logs --selector app.kubernetes.io/name=kube-unions --prefix --tail -1
  } >&2 || true
}
trap end EXIT

helm install "$release" charts/kube-unions --namespace "$namespace" --create-namespace --wait --timeout 180s \
  --set "image.repository=${image%:*}" --set-string "image.tag=${image##*:}" --set image.pullPolicy=Never
helm test "$release" --namespace "$namespace" --logs --timeout 180s
took "helm install and helm test"

# A test runs this example.
"$cargo" build --locked --package kube-unions-author --example rollout
KUBE_UNIONS_E2E_KUBECONFIG=$KUBECONFIG "$cargo" test --locked --workspace --all-features --test e2e 2>&1 | tee "$output"
count=$(checked "$output") || {
  log "no test checked the installed chart"
  exit 1
}
log "$count tests checked the installed chart; $(left_out "$output" | wc -l) were left out"
took "the tests"

helm uninstall "$release" --namespace "$namespace" --wait --timeout 180s
# No registration may be left, because no webhook answers any more.
left=$(kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations --output name)
if grep -q kube-unions <<<"$left"; then
  log "still registered after uninstalling: $left"
  exit 1
fi
# The CRDs of the tests are still there: writes of their kinds succeed.
kubectl apply --filename manifests/samples/rollout/valid-recreate.yaml
took "helm uninstall"
