#!/usr/bin/env bash
# Prints time and memory of `audit` for objects of which every tenth is invalid, with a data segment of 64 MiB, and of `lint` for CRDs.
# Needs GNU time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${KUBE_UNIONS_BIN:?set it to the program}"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
crd=manifests/samples/rollout/crd.yaml
invalid='rollingUpdate: {maxSurge: 1}'

# documents NUMBER    YAML documents
documents() {
  seq "$1" | awk -v invalid="$invalid" '{
    printf "---\napiVersion: samples.kube-unions.dev/v1\nkind: Rollout\nmetadata:\n  name: web-%d\n  namespace: shop\nspec:\n", $1
    printf "  strategy:\n    type: Recreate\n%s", $1 % 10 ? "" : "    " invalid "\n" }'
}

# list NUMBER    a List in YAML
list() {
  printf 'apiVersion: v1\nkind: List\nitems:\n'
  documents "$1" | sed 's/^/  /; s/^  apiVersion/- apiVersion/; /^  ---$/d'
}

# json NUMBER    a List in JSON
json() {
  printf '{"apiVersion":"v1","items":[{}'
  seq "$1" | awk '{
    printf ",\n{\"apiVersion\":\"samples.kube-unions.dev/v1\",\"kind\":\"Rollout\",\"metadata\":{\"name\":\"web-%d\",\"namespace\":\"shop\"},", $1
    printf "\"spec\":{\"strategy\":{\"type\":\"Recreate\"%s}}}", $1 % 10 ? "" : ",\"rollingUpdate\":{\"maxSurge\":1}" }'
  printf '],"kind":"List"}'
}

# measured TITLE COMMAND...
measured() {
  env time -q -o "$folder/used" -f '%e s, %U s of CPU, %M KiB' "${@:2}" >/dev/null 2>"$folder/said" || true
  printf '%-22s  %-36s  %s\n' "$1" "$(cat "$folder/used")" "$(tail -n 1 "$folder/said")"
}

for number in 10000 100000; do
  for form in json list documents; do
    "$form" "$number" >"$folder/objects"
    (ulimit -d 65536 && measured "audit $number $form" "$KUBE_UNIONS_BIN" audit --from "$crd" -f "$folder/objects")
  done
done
for number in 200 2000; do
  mkdir "$folder/$number"
  seq "$number" | while read -r index; do
    sed "s/rollout/rollout$index/g; s/Rollout/Rollout$index/g; s/\[ro\]/[ro$index]/" "$crd" >"$folder/$number/$index.yaml"
  done
  measured "lint $number" "$KUBE_UNIONS_BIN" lint "$folder/$number"
done
