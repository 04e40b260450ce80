#!/usr/bin/env bash
# Checks that kubeconform calls the samples invalid that `audit` does, by the JSON schemas of their CRDs. Needs Go.
#
#   kubeconform.sh FOLDER   the folder for the schemas, and for kubeconform
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

: "${KUBE_UNIONS_BIN:?set it to the program}"
samples=manifests/samples
schemas=$1
(cd tests/editor && go build -o "$schemas/kubeconform" github.com/yannh/kubeconform/cmd/kubeconform)
audited=
for folder in "$samples"/*/; do
  [ -f "${folder}crd.yaml" ] || continue
  "$KUBE_UNIONS_BIN" compile --to json-schema --from "$folder" --output-dir "$schemas" 2>/dev/null
  audited+=$("$KUBE_UNIONS_BIN" audit --from "$folder" -o json 2>/dev/null |
    sed -n 's/.*"finding":"invalid".*"file":"\([^"]*\)".*/\1/p')$'\n' || true
done
checked=$("$schemas/kubeconform" -schema-location "$schemas/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json" \
  -summary "$samples"/*/*.new.yaml "$samples"/*/valid-*.yaml) || true
diff <(sort -u <<<"$audited" | grep .) <(sed -n 's/ - .* is invalid: .*//p' <<<"$checked" | sort -u)
grep "^Summary: .* Invalid: [1-9].* Errors: 0" <<<"$checked"
