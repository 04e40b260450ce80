#!/usr/bin/env bash
# Prints the mean time of a start, beside that of a program that does nothing, and time and memory of `preview` for Deployments of which every
# union, or none, is valid after the upgrade. Needs GNU time.
set -euo pipefail

: "${KUBE_UNIONS_BIN:?set it to the program}"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# deployments NUMBER FIELD    FIELD is added to the spec of each
deployments() {
  seq "$1" | sed "s/.*/{apiVersion: apps\/v1, kind: Deployment, metadata: {name: web-&}, spec: {$2, selector: {matchLabels: {app: web}}, \
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com\/web:1}]}}}}\n---/"
}

# start COMMAND...    the mean of fifty runs
start() {
  local begin=${EPOCHREALTIME/[.,]/} run
  for ((run = 0; run < 50; run++)); do "$@" >/dev/null 2>&1; done
  printf '%8d us  %s\n' $(((${EPOCHREALTIME/[.,]/} - begin) / 50)) "${*/#"$folder/"/}"
}

deployments 1 "replicas: 1" >"$folder/one.yaml"
start env true
start "$KUBE_UNIONS_BIN" version
start "$KUBE_UNIONS_BIN" preview --old "$folder/one.yaml" --new "$folder/one.yaml"

for number in 1000 10000; do
  deployments "$number" "replicas: 1" >"$folder/old.yaml"
  deployments "$number" "replicas: 2" >"$folder/valid.yaml"
  deployments "$number" "strategy: {type: Recreate}" >"$folder/invalid.yaml"
  for new in valid invalid; do
    for way in ssa csa merge; do
      env time -q -o "$folder/used" -f "%e s, %U s of CPU, %M KiB" \
        "$KUBE_UNIONS_BIN" preview --old "$folder/old.yaml" --new "$folder/$new.yaml" --as "$way" >/dev/null 2>"$folder/said" || true
      printf '%-7s  %-5s  %-36s  %s\n' "$new" "$way" "$(cat "$folder/used")" "$(tail -n 1 "$folder/said")"
    done
  done
done
