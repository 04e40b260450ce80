#!/usr/bin/env bash
# Runs the end-to-end tests in the cluster of tests/node.sh: first those that install the chart themselves, then on an installed chart
# those that run on any cluster.
#
#   e2e.sh IMAGE                  IMAGE is the name of the image on the nodes
#   e2e.sh IMAGE ARGUMENT...      runs only tests of the first kind, with these arguments for the test binary
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

image=${1:?name the image, for example kube-unions:dev}
shift
tests=("${CARGO:-cargo}" test --quiet --locked --workspace --all-features --test e2e)
# Use the kubectl of the cluster.
unset KUBEBUILDER_ASSETS KUBE_UNIONS_E2E

took() { echo "node: $1 took $((SECONDS - from)) s" >&2; }

from=$SECONDS
KUBE_UNIONS_E2E_NODE=$KUBECONFIG KUBE_UNIONS_E2E_IMAGE=$image "${tests[@]}" -- --test-threads=1 "${@:-node::}"
took "the tests that install the chart"
[ "$#" = 0 ] || exit 0

from=$SECONDS
helm install kube-unions charts/kube-unions --namespace kube-unions --create-namespace --wait --timeout 180s \
  --set "image.repository=${image%:*}" --set-string "image.tag=${image##*:}" --set image.pullPolicy=Never >/dev/null
took "the installation of the chart"
from=$SECONDS
KUBE_UNIONS_E2E_KUBECONFIG=$KUBECONFIG "${tests[@]}"
took "the tests on the installed chart"
helm uninstall kube-unions --namespace kube-unions --wait --timeout 180s
