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

repository=${1:-}
[ -n "$repository" ] || fail "name the repository to push to"
crane=${CRANE:-}
[ -x "$crane" ] || fail "CRANE is \`$crane\`, which is no program: run \`make release-tools\` and name its crane"
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64}"

# The configuration in the last stage of the Dockerfile, as arguments of `crane mutate`.
configuration() {
  local keyword rest pair
  sed -e ':next' -e '/\\$/{N;s/\\\n *//;b next' -e '}' Dockerfile | sed '1,/^FROM scratch$/d' | while read -r keyword rest; do
    case "$keyword" in
      ENV) for pair in $rest; do echo "--env=$pair"; done ;;
      USER) echo "--user=$rest" ;;
      EXPOSE) for pair in $rest; do echo "--exposed-ports=$pair/tcp"; done ;;
      ENTRYPOINT)
        rest=${rest#'["'}
        echo "--entrypoint=${rest%'"]'}"
        ;;
      LABEL) xargs -n 1 <<<"$rest" | sed 's/^/--label=/' ;;
      COPY | '' | '#') ;;
      *) fail "the Dockerfile has the instruction \`$keyword\` after \`FROM scratch\`, which this script does not know" ;;
    esac
  done
}

folder=$(mktemp -d)
end() {
  end_registry
  rm -rf "$folder"
}
trap end EXIT

configuration >"$folder/configuration"
flags=(
  "--label=org.opencontainers.image.version=$version"
  "--label=org.opencontainers.image.revision=$(git rev-parse HEAD)"
  "--label=org.opencontainers.image.source=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)"
)
while IFS= read -r flag; do flags+=("$flag"); done <"$folder/configuration"

# crane changes the configuration of an image only in a registry, so the image is assembled in one on loopback.
start_registry "$folder"
manifests=()
for platform in "${platforms[@]}"; do
  file=$(archive "$platform")
  [ -f "$file" ] || fail "there is no archive \`$file\`: run \`make dist DIST_PLATFORM=$platform\`"
  contents=$folder/${platform/\//-}
  mkdir -p "$contents/unpacked" "$contents/usr/local/bin" "$contents/licenses"
  tar --extract --gzip --file "$file" --directory "$contents/unpacked" --strip-components=1
  install -m 0755 "$contents/unpacked/kube-unions" "$contents/usr/local/bin/kube-unions"
  install -m 0644 "$contents/unpacked/LICENSE" "$contents/licenses/LICENSE"
  pack "$contents" licenses usr >"$contents/layer.tar"
  scratch=$registry/scratch:${platform/\//-}
  "$crane" append --oci-empty-base --new_layer "$contents/layer.tar" --new_tag "$scratch" >/dev/null 2>"$folder/log" ||
    fail "the image for $platform cannot be assembled: $(cat "$folder/log")"
  image=$("$crane" mutate "$scratch" --set-platform "$platform" "${flags[@]}" --repo "$repository" 2>"$folder/log") ||
    fail "the image for $platform cannot be pushed to \`$repository\`: $(cat "$folder/log")"
  log "pushed $image for $platform"
  manifests+=(--manifest "$image")
done

index=$("$crane" index append "${manifests[@]}" --tag "$repository:$version" 2>"$folder/log") ||
  fail "the index cannot be pushed to \`$repository:$version\`: $(cat "$folder/log")"
echo "${index##*@}" >"$dist/image.digest"
log "pushed $index as $repository:$version"
