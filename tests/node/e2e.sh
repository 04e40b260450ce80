#!/usr/bin/env bash
# Runs the end-to-end tests in the cluster of tests/node.sh: first those that install the chart themselves, then those that run on any
# cluster (tests/installed.sh).
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

KUBE_UNIONS_E2E_NODE=$KUBECONFIG KUBE_UNIONS_E2E_IMAGE=$image "${tests[@]}" -- --test-threads=1 "${@:-node::}"
echo "node: the tests that install the chart took $SECONDS s" >&2
[ "$#" = 0 ] || exit 0

tests/installed.sh "$image"
