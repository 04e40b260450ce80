#!/usr/bin/env bash
# Runs the end-to-end tests in the cluster of tests/node.sh: first those that install the chart themselves, then on an installed chart
# those that run on any cluster.
#
#   e2e.sh IMAGE FILTER...        IMAGE is the name of the image on the node; with a filter, runs only these tests of the first kind
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

image=${1:?name the image, for example kube-unions:dev}
shift
tests=("${CARGO:-cargo}" test --quiet --locked --all-features --test e2e)
# Use the kubectl of the cluster.
unset KUBEBUILDER_ASSETS KUBE_UNIONS_E2E

KUBE_UNIONS_E2E_NODE=$KUBECONFIG KUBE_UNIONS_E2E_IMAGE=$image "${tests[@]}" -- "${@:-node::}"
[ "$#" = 0 ] || exit 0

helm install kube-unions charts/kube-unions --namespace kube-unions --create-namespace --wait --timeout 180s \
  --set "image.repository=${image%:*}" --set-string "image.tag=${image##*:}" --set image.pullPolicy=Never >/dev/null
KUBE_UNIONS_E2E_KUBECONFIG=$KUBECONFIG "${tests[@]}"
helm uninstall kube-unions --namespace kube-unions --wait --timeout 180s
