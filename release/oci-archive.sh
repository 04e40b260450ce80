#!/usr/bin/env bash
# Writes an image as an OCI archive, which `ctr images import`, `podman load` and `skopeo` read, and prints its digest. Needs no
# container engine. The same commit and contents give the same archive.
#
#   oci-archive.sh FILE NAME CONTENTS
#                                 NAME is the image's, for example kube-unions:dev. CONTENTS has the files of `make image-contents`.
#                                 The configuration is the one in the Dockerfile.
#   oci-archive.sh FILE NAME CONTENTS ARGUMENT...
#                                 takes these arguments of `crane mutate` as the configuration
#   PLATFORM=linux/arm64          the platform; this machine's by default
#   CRANE=FILE                    the program crane, which `make release-tools` builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh
# shellcheck source=release/registry.sh
. release/registry.sh
# shellcheck source=release/assembly.sh
. release/assembly.sh

[ "$#" -ge 3 ] || fail "name the file to write, the image, and the folder with its contents"
file=$1 image=$2 contents=$3
shift 3
# The kubelet and Docker complete a short name likewise.
[[ "${image##*/}" == *:* ]] || image+=:latest
[[ "$image" == */* ]] || image=library/$image
[[ "${image%%/*}" == *[.:]* || "$image" == localhost/* ]] || image=docker.io/$image
[ -d "$contents" ] || fail "there is no folder \`$contents\`: run \`make image-contents\`"
crane=${CRANE:-}
[ -x "$crane" ] || fail "CRANE is \`$crane\`, which is no program: run \`make release-tools\` and name its crane"
platform=${PLATFORM:-linux/$(uname -m | sed 's/^x86_64$/amd64/; s/^aarch64$/arm64/')}

folder=$(mktemp -d)
end() {
  end_registry
  rm -rf "$folder"
}
trap end EXIT

if [ "$#" = 0 ]; then
  configuration >"$folder/configuration"
  while IFS= read -r flag; do set -- "$@" "$flag"; done <"$folder/configuration"
fi
start_registry "$folder"
pushed=$(assemble "$platform" "$contents" "$registry/image" "$@")
"$crane" pull --format oci "$pushed" "$folder/layout" 2>"$folder/log" ||
  fail "$pushed cannot be read back: $(cat "$folder/log")"

# The annotation is the name that containerd gives to the image.
digest=${pushed##*@}
size=$(wc -c <"$folder/layout/blobs/sha256/${digest#sha256:}")
cat >"$folder/layout/index.json" <<EOF
{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.index.v1+json",
  "manifests": [{
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "digest": "$digest",
    "size": $size,
    "platform": {"os": "${platform%/*}", "architecture": "${platform#*/}"},
    "annotations": {"io.containerd.image.name": "$image", "org.opencontainers.image.ref.name": "${image##*:}"}
  }]
}
EOF
chmod 0644 "$folder/layout/index.json" "$folder/layout/oci-layout"
mkdir -p "$(dirname "$file")"
pack "$folder/layout" oci-layout index.json blobs >"$file"
log "$file has $image for $platform, $(wc -c <"$file") bytes"
echo "$digest"
