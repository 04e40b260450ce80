#!/usr/bin/env bash
# Runs the end-to-end tests on the API server of K8S_VERSION, and writes the result into tests/controlplane/runs, from which the
# table in docs/guide/choosing.md is made. Prints the tests that the version leaves out.
#
#   versions.sh COMMAND…    the command that runs the tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/counts.sh
. tests/counts.sh

: "${K8S_VERSION:?set it to a version, for example 1.35}"
assets=$(tests/controlplane/assets.sh controller-manager)
version=$("$assets/kube-apiserver" --version | sed 's/^Kubernetes //')
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$@" 2>&1 | tee "$log"

# Some tests are left out whatever the version is.
lacking=$(left_out "$log" 'because Kubernetes ')
lacking_count=$(grep -c . <<<"$lacking" || true)
passed=$(checked "$log") || {
  echo "versions.sh: \`$*\` ran no test" >&2
  exit 1
}
echo "Kubernetes $version: $passed passed, $lacking_count left out, because the version lacks a feature"
[ -z "$lacking" ] || echo "$lacking"
mkdir -p tests/controlplane/runs
cat >"tests/controlplane/runs/$K8S_VERSION.json" <<EOF
{"kubernetes": "$version", "date": "$(date -u +%F)", "passed": $passed, "leftOut": $lacking_count}
EOF
