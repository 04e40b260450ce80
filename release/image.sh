#!/usr/bin/env bash
# Publishes the image of several platforms from the archives of `dist.sh`: pushes an image for each one by its digest, and an index
# of them with the version as tag. Writes the digest of the index to image.digest in the folder of the release.
#
# Needs no container engine. An image has the contents of `make image-contents` and the configuration in the Dockerfile.
#
#   image.sh REPOSITORY           for example ghcr.io/kube-unions/kube-unions; credentials are those of `docker login`
#   PLATFORMS="linux/amd64 …"     the platforms; linux/amd64 and linux/arm64 by default
#   CRANE=FILE                    the program crane, which `make release-tools` builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh
# shellcheck source=release/registry.sh
. release/registry.sh
# shellcheck source=release/assembly.sh
. release/assembly.sh

repository=${1:-}
[ -n "$repository" ] || fail "name the repository to push to"
crane=${CRANE:-}
[ -x "$crane" ] || fail "CRANE is \`$crane\`, which is no program: run \`make release-tools\` and name its crane"
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64}"

folder=$(mktemp -d)
end() {
  end_registry
  rm -rf "$folder"
}
trap end EXIT

configuration >"$folder/configuration"
flags=()
while IFS= read -r flag; do flags+=("$flag"); done <"$folder/configuration"

start_registry "$folder"
manifests=()
for platform in "${platforms[@]}"; do
  file=$(archive "$platform" kube-unions-webhook)
  [ -f "$file" ] || fail "there is no archive \`$file\`: run \`make dist DIST_PLATFORM=$platform\`"
  unpacked=$folder/${platform/\//-}
  contents=$unpacked/contents
  mkdir -p "$contents/usr/local/bin" "$contents/licenses"
  tar --extract --gzip --file "$file" --directory "$unpacked" --strip-components=1
  install -m 0755 "$unpacked/kube-unions-webhook" "$contents/usr/local/bin/kube-unions-webhook"
  install -m 0644 "$unpacked/LICENSE" "$contents/licenses/LICENSE"
  image=$(assemble "$platform" "$contents" "$repository" "${flags[@]}")
  log "pushed $image for $platform"
  manifests+=(--manifest "$image")
done

index=$("$crane" index append "${manifests[@]}" --tag "$repository:$version" 2>"$folder/log") ||
  fail "the index cannot be pushed to \`$repository:$version\`: $(cat "$folder/log")"
echo "${index##*@}" >"$dist/image.digest"
log "pushed $index as $repository:$version"
