#!/usr/bin/env bash
# Runs the steps of a release on a copy of this repository, with an OCI registry on loopback: the checks, the archives, the SBOM, the
# image, the chart, the manifest for krew and the tag of the Go module. Signatures, the registry of crates and the release on GitHub
# need the hosting service, so they are left out.
#
#   rehearsal.sh [CONTENTS]     CONTENTS has the files of `make image-contents`; without it, the debug profile is built
#   ARM64=CONTENTS              the files of `make image-contents IMAGE_PLATFORM=linux/arm64`, for an image of two platforms
#   CRANE=FILE                  the program crane, which `make release-tools` builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh
# shellcheck source=release/registry.sh
. release/registry.sh
crane=${CRANE:?name the program crane}

folder=$(mktemp -d)
end() {
  end_registry
  rm -rf "$folder"
}
trap end EXIT

# succeeds COMMAND...: shows what the command printed only if it fails.
succeeds() {
  "$@" >"$folder/log" 2>&1 || fail "\`$*\` failed: $(cat "$folder/log")"
}
# fails TEXT COMMAND...: the command fails, and prints the text.
fails() {
  local text=$1
  shift
  if "$@" >"$folder/log" 2>&1; then fail "\`$*\` did not fail"; fi
  grep -qF -- "$text" "$folder/log" || fail "\`$*\` does not print \`$text\`: $(cat "$folder/log")"
}
same() {
  [ "$2" = "$3" ] || fail "$1: found \`$2\`, expected \`$3\`"
}

contents=${1:-}
if [ -z "$contents" ]; then
  contents=$folder/contents
  make -s image-contents IMAGE_PROFILE=dev CONTENTS="$contents" >&2
fi
case "$(uname -m)" in
  x86_64) platforms=(linux/amd64) ;;
  aarch64) platforms=(linux/arm64) ;;
  *) fail "there is no archive for the processor $(uname -m)" ;;
esac
declare -A webhooks=(["${platforms[0]}"]="$(realpath "$contents")/usr/local/bin/kube-unions-webhook") binaries
if [ -n "${ARM64:-}" ] && [ "${platforms[0]}" != linux/arm64 ]; then
  platforms+=(linux/arm64)
  webhooks[linux/arm64]=$(realpath "$ARM64")/usr/local/bin/kube-unions-webhook
fi
for platform in "${platforms[@]}"; do
  make -s image-contents PROGRAM=kube-unions IMAGE_PROFILE=dev IMAGE_PLATFORM="$platform" CONTENTS="$folder/$platform" >&2
  binaries[$platform]=$folder/$platform/usr/local/bin/kube-unions
done

contents=$(realpath "$contents")
target=$(realpath "${CARGO_TARGET_DIR:-target}")

# A copy of the files of this checkout, committed or not, as the commit of a release. Its remote is a repository of its own.
HELM_BIN=$(tests/controlplane/assets.sh helm)/helm
export HELM_BIN
# No configuration or credentials of the user.
export HELM_CONFIG_HOME=$folder/helm HELM_CACHE_HOME=$folder/helm HELM_DATA_HOME=$folder/helm DOCKER_CONFIG=$folder/docker
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=rehearsal GIT_AUTHOR_EMAIL=rehearsal@localhost GIT_COMMITTER_NAME=rehearsal
export GIT_COMMITTER_EMAIL=rehearsal@localhost
copy=$folder/copy
mkdir "$copy"
while IFS= read -r -d '' path; do
  [ ! -e "$path" ] || printf '%s\0' "$path"
done < <(git ls-files -z --cached --others --exclude-standard) | tar --create --null --files-from=- | tar --extract --directory "$copy"
cd "$copy"
sed -i "s/^## Unreleased\$/&\n\n## [$version] - 2000-01-01/" CHANGELOG.md
git init --quiet --initial-branch=main
git add --all
git commit --quiet --message="Release $version"
git init --quiet --bare "$folder/remote"
git remote add origin "$folder/remote"

export DIST=$folder/dist CARGO_TARGET_DIR=$target
make=(make --silent --no-print-directory)

succeeds "${make[@]}" release-check "TAG=v$version"
fails "the tag is \`v0.0.0-other\`" "${make[@]}" release-check TAG=v0.0.0-other
touch uncommitted
fails 'uncommitted' "${make[@]}" release-check
rm uncommitted
notes=$("${make[@]}" release-notes)
same "notes of the release" "$notes" "$(sed "1,/^## \[$version\]/d; /^## /,\$d" CHANGELOG.md | sed '/./,$!d')"
log "v$version can be released; another tag and a changed tree cannot; its notes have $(grep -c '^- ' <<<"$notes") entries"

succeeds "${make[@]}" publish-dry-run VERIFY=no

for platform in "${platforms[@]}"; do
  file=$(dist=$DIST archive "$platform")
  image=$(dist=$DIST archive "$platform" kube-unions-webhook)
  run=
  if [ "$platform" != "${platforms[0]}" ]; then run=qemu-aarch64-static; fi
  for _ in first second; do
    succeeds env DIST_RUN="$run" "${make[@]}" dist "DIST_PLATFORM=$platform" "BINARY=${binaries[$platform]}" \
      "WEBHOOK=${webhooks[$platform]}"
    sha256sum "$file" "$image" >>"$folder/digests"
  done
  same "archives of one commit" "$(sort -u "$folder/digests" | wc -l)" 2
  rm "$folder/digests"
  top=$(basename "$file" .tar.gz)
  for path in kube-unions LICENSE completions/_kube-unions man/kube-unions.1; do
    tar --list --gzip --file "$file" "$top/$path" >/dev/null || fail "$file has no $path"
  done
  log "$(basename "$file"): $(tar --list --gzip --file "$file" | grep -vc '/$') files, the same archive twice"
done

start_registry "$folder"
export REPOSITORY=$registry/kube-unions/kube-unions CHART_REPOSITORY=oci://$registry/kube-unions/charts HELM_FLAGS=--plain-http
succeeds "${make[@]}" image-publish "IMAGE_PLATFORMS=${platforms[*]}"
digest=$(cat "$DIST/image.digest")
succeeds "${make[@]}" image-publish "IMAGE_PLATFORMS=${platforms[*]}"
same "digest of the same image, published again" "$(cat "$DIST/image.digest")" "$digest"
same "digest of the tag $version" "$("$crane" digest "$REPOSITORY:$version")" "$digest"
same "tags" "$("$crane" ls "$REPOSITORY")" "$version"
for platform in "${platforms[@]}"; do
  "$crane" --platform "$platform" export "$REPOSITORY@$digest" "$folder/image.tar"
  same "files of the image for $platform" "$(tar --list --verbose --file "$folder/image.tar" | sed -n 's/^-.* //p' | paste -sd ' ')" \
    "licenses/LICENSE usr/local/bin/kube-unions-webhook"
  tar --extract --to-stdout --file "$folder/image.tar" usr/local/bin/kube-unions-webhook | cmp - "${webhooks[$platform]}"
  "$crane" --platform "$platform" config "$REPOSITORY@$digest" >"$folder/config"
  for part in '"User":"65532:65532"' '"Entrypoint":["/usr/local/bin/kube-unions-webhook"]' '"MALLOC_ARENA_MAX=2"' '"10250/tcp":{}' \
    "\"architecture\":\"${platform#*/}\"" "\"org.opencontainers.image.revision\":\"$(git rev-parse HEAD)\""; do
    grep -qF -- "$part" "$folder/config" || fail "the configuration of the image for $platform lacks $part: $(cat "$folder/config")"
  done
done
log "pushed $digest for ${platforms[*]}, twice the same"

# The archive of the image for this machine has the manifest that was pushed.
for run in first second; do
  touch "$contents/licenses/LICENSE"
  succeeds "${make[@]}" image-archive "CONTENTS=$contents" "IMAGE_ARCHIVE=$folder/$run.tar" IMAGE=kube-unions:rehearsal
done
cmp "$folder/first.tar" "$folder/second.tar"
same "digest in the archive" "$(tail -n 1 "$folder/log")" "$("$crane" --platform "${platforms[0]}" digest "$REPOSITORY@$digest")"
tar --extract --to-stdout --file "$folder/first.tar" index.json >"$folder/index.json"
grep -qF '"io.containerd.image.name": "docker.io/library/kube-unions:rehearsal"' "$folder/index.json" ||
  fail "containerd finds no name in the archive: $(cat "$folder/index.json")"
log "the archive of the image for ${platforms[0]} has the same manifest"

succeeds "${make[@]}" chart-package
succeeds "${make[@]}" chart-publish
chart=$CHART_REPOSITORY/kube-unions
succeeds "$HELM_BIN" pull "$chart" --version "$version" --plain-http --destination "$folder"
cmp "$folder/kube-unions-$version.tgz" "$DIST/kube-unions-$version.tgz"
same "digest of the chart" "$("$crane" digest "${chart#oci://}:$version")" "$(cat "$DIST/chart.digest")"
"$HELM_BIN" template kube-unions "$chart" --version "$version" --plain-http --namespace kube-unions >"$folder/rendered" \
  2>"$folder/log" || fail "the published chart cannot be rendered: $(cat "$folder/log")"
same "image of the Deployment" \
  "$(sed -n '/^kind: Deployment$/,/^---$/s/^ *image: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$folder/rendered" | sort -u)" \
  "$REPOSITORY@$digest"
log "pushed the chart; its Deployment runs $REPOSITORY@$digest"

succeeds "${make[@]}" sbom
succeeds "${make[@]}" krew-manifest "DIST_PLATFORMS=${platforms[*]}"
succeeds "${make[@]}" checksums
(cd "$DIST" && sha256sum --check --strict --quiet SHA256SUMS)
for platform in "${platforms[@]}"; do
  file=$(dist=$DIST archive "$platform")
  image=$(dist=$DIST archive "$platform" kube-unions-webhook)
  grep -qF "    sha256: $(sha256sum "$file" | cut -d ' ' -f 1)" "$DIST/unions.yaml" || fail "unions.yaml lacks the digest of $file"
done
succeeds "${make[@]}" go-tag
same "tag of the Go module" "$(git --git-dir="$folder/remote" tag)" "go/v$version"
log "$(wc -l <"$DIST/SHA256SUMS") files with checksums, the manifest for krew and the tag go/v$version"
