#!/usr/bin/env bash
# Runs the end-to-end tests on the API server of K8S_VERSION, and writes the result into tests/controlplane/runs, from which the
# table in the README is made. Prints the tests that the version leaves out.
#
#   versions.sh COMMAND…    the command that runs the tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${K8S_VERSION:?set it to a version, for example 1.35}"
assets=$(tests/controlplane/assets.sh controller-manager)
version=$("$assets/kube-apiserver" --version | sed 's/^Kubernetes //')
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$@" 2>&1 | tee "$log"

ran=$(sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$log")
left_out=$(sed -nE 's/.*left out, because Kubernetes .*: ([a-z_:0-9]+)$/\1/p' "$log" | sort -u)
left_out_count=$(grep -c . <<<"$left_out" || true)
passed=$((${ran:-0} - left_out_count))
[ "$passed" -gt 0 ] || {
  echo "versions.sh: \`$*\` ran no test" >&2
  exit 1
}
echo "Kubernetes $version: $passed passed, $left_out_count left out"
[ -z "$left_out" ] || echo "$left_out"
mkdir -p tests/controlplane/runs
cat >"tests/controlplane/runs/$K8S_VERSION.json" <<EOF
{"kubernetes": "$version", "date": "$(date -u +%F)", "passed": $passed, "leftOut": $left_out_count}
EOF
