#!/usr/bin/env bash
# Packages the chart with the image's repository and digest, so that one version of the chart always runs the same image.
#
#   chart.sh stamp REPOSITORY DIGEST FOLDER     writes the stamped chart to FOLDER/kube-unions
#   chart.sh package REPOSITORY DIGEST          writes the package to the folder of the release
#   chart.sh publish OCI_REPOSITORY             pushes the package, and writes its digest to chart.digest beside it
#
#   HELM_BIN=FILE        the program helm, which tests/controlplane/assets.sh builds otherwise
#   HELM_FLAGS=FLAGS     flags of `helm push`, for example --plain-http
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

usage() {
  fail "use: chart.sh stamp REPOSITORY DIGEST FOLDER, chart.sh package REPOSITORY DIGEST, or chart.sh publish OCI_REPOSITORY"
}
command=${1:-}
case "$command:$#" in
  stamp:4 | package:3)
    repository=$2 digest=$3
    [[ "$digest" =~ ^sha256:[0-9a-f]{64}$ ]] || fail "\`$digest\` is no digest: use sha256: and 64 hexadecimal digits"
    [[ "$repository" =~ ^[a-zA-Z0-9./:_-]+$ ]] || fail "\`$repository\` is no repository of an image"
    ;;
  publish:2) ;;
  *) usage ;;
esac
helm() {
  if [ -z "${HELM_BIN:-}" ]; then HELM_BIN=$(tests/controlplane/assets.sh helm)/helm; fi
  "$HELM_BIN" "$@"
}

stamp() {
  local chart=$1/kube-unions
  mkdir -p "$1"
  # The files behind the links of presets, policies and the CRD.
  cp -RL charts/kube-unions "$1"
  # The comments before the values stay: the chart's README shows the values of the sources.
  REPOSITORY=$repository DIGEST=$digest awk '
    /^[^ #]/ { within = /^image:/ }
    within && /^  repository:/ { print "  repository: " ENVIRON["REPOSITORY"]; next }
    within && /^  digest:/ { print "  digest: " ENVIRON["DIGEST"]; next }
    { print }' charts/kube-unions/values.yaml >"$chart/values.yaml"
  for line in "  repository: $repository" "  digest: $digest"; do
    [ "$(grep -cxF "$line" "$chart/values.yaml")" = 1 ] ||
      fail "charts/kube-unions/values.yaml has no place for \`${line#"${line%%[! ]*}"}\` in \`image\`"
  done
  grep -q '^annotations:' "$chart/Chart.yaml" || fail "charts/kube-unions/Chart.yaml has no \`annotations\`"
  REPOSITORY=$repository DIGEST=$digest awk '
    { print }
    /^annotations:/ {
      print "  artifacthub.io/images: |"
      print "    - name: kube-unions"
      print "      image: " ENVIRON["REPOSITORY"] "@" ENVIRON["DIGEST"]
    }' charts/kube-unions/Chart.yaml >"$chart/Chart.yaml"
}

case "$command" in
  stamp) stamp "$4" ;;
  package)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    stamp "$folder"
    mkdir -p "$dist"
    helm lint --quiet "$folder/kube-unions" >&2
    helm package "$folder/kube-unions" --destination "$dist" >&2
    ;;
  publish)
    package=$dist/kube-unions-$version.tgz
    [ -f "$package" ] || fail "there is no package \`$package\`: run \`make chart-package\`"
    read -ra flags <<<"${HELM_FLAGS:-}"
    said=$(helm push "${flags[@]}" "$package" "$2" 2>&1) || fail "helm cannot push \`$package\` to \`$2\`: $said"
    digest=$(sed -n 's/^Digest: *\(sha256:[0-9a-f]*\)$/\1/p' <<<"$said")
    [ -n "$digest" ] || fail "helm does not say the digest of the chart: $said"
    echo "$digest" >"$dist/chart.digest"
    log "pushed $2/kube-unions:$version, $digest"
    ;;
esac
