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
# Each test that is left out says so in a line that ends with its name. Some are left out whatever the version is.
left_out() { sed -nE "s/^left out, $1.*: ([a-z_:0-9]+)\$/\1/p" "$log" | sort -u; }
lacking=$(left_out 'because Kubernetes ')
lacking_count=$(grep -c . <<<"$lacking" || true)
passed=$((${ran:-0} - $(left_out '' | wc -l)))
[ "$passed" -gt 0 ] || {
  echo "versions.sh: \`$*\` ran no test" >&2
  exit 1
}
echo "Kubernetes $version: $passed passed, $lacking_count left out, because the version lacks a feature"
[ -z "$lacking" ] || echo "$lacking"
mkdir -p tests/controlplane/runs
cat >"tests/controlplane/runs/$K8S_VERSION.json" <<EOF
{"kubernetes": "$version", "date": "$(date -u +%F)", "passed": $passed, "leftOut": $lacking_count}
EOF
