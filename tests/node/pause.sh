#!/usr/bin/env bash
# Writes the image of a pod's sandbox, kube-unions-pause:dev, as an OCI archive. Its only file is a static program.
#
#   pause.sh FILE
#   CC=COMMAND                    the C compiler; `cc` by default
#   CRANE=FILE                    the program crane, which `make release-tools` builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

file=${1:?name the file to write}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/contents"
"${CC:-cc}" -std=gnu11 -Wall -Wextra -Wpedantic -Werror -Os -static -s -Wl,--build-id=none -o "$folder/contents/pause" tests/node/pause.c
release/oci-archive.sh "$file" kube-unions-pause:dev "$folder/contents" --entrypoint=/pause --user=65535:65535
