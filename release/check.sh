#!/usr/bin/env bash
# Checks that a commit can be released: every version is the tag's, CHANGELOG.md has the section, and the tree is clean. Lists lines
# that say that something is not published, which the commit of the release has to change.
#
#   check.sh [TAG]     TAG is `v` and the version of the workspace by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

tag=${1:-v$version}
problems=()
same() {
  [ "$3" = "$version" ] || problems+=("$1: $2 is \`$3\`, and the version of the workspace is \`$version\`")
}
chart() { sed -n "s/^$1: *\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" charts/kube-unions/Chart.yaml; }

[ "$tag" = "v$version" ] || problems+=("the tag is \`$tag\`, and the version of the workspace in Cargo.toml is \`$version\`")
same charts/kube-unions/Chart.yaml version "$(chart version)"
same charts/kube-unions/Chart.yaml appVersion "$(chart appVersion)"
same manifests/webhook/kustomization.yaml newTag "$(sed -n 's/^ *newTag: *//p' manifests/webhook/kustomization.yaml)"
while IFS='=' read -r crate required; do
  same Cargo.toml "the required version of $crate" "$required"
done < <(sed -n 's/^\([a-z-]*\) = { path = "[^"]*", version = "\([^"]*\)".*/\1=\2/p' Cargo.toml)
release/notes.sh "$version" >/dev/null 2>&1 ||
  problems+=("CHANGELOG.md has no section \`## [$version] - DATE\` with entries: move those of \"Unreleased\" there")
changed=$(git status --porcelain)
[ -z "$changed" ] || problems+=("the tree has changes that are not committed:"$'\n'"$changed")

if lines=$(grep -rniE 'not( yet)? (been )?published|no published image|no release has been published' \
  README.md charts docs/guide docs/README.md manifests --include='*.md' --include=values.yaml); then
  log "these lines say that something is not published yet; change them in the commit of the release:"$'\n'"$lines"
fi
if [ "${#problems[@]}" -gt 0 ]; then
  for problem in "${problems[@]}"; do log "$problem"; done
  fail "$tag cannot be released"
fi
log "$tag can be released"
