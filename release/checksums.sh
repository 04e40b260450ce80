#!/usr/bin/env bash
# Writes SHA256SUMS for the archives, the chart and the SBOM in the folder of the release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

files=()
for file in "$dist"/*.tar.gz "$dist"/*.tgz "$dist"/*.cdx.json; do
  [ ! -f "$file" ] || files+=("$(basename "$file")")
done
[ "${#files[@]}" -gt 0 ] || fail "\`$dist\` has no archive, chart or SBOM: run \`make dist\` first"
sums=$(cd "$dist" && LC_ALL=C sha256sum -- "${files[@]}")
LC_ALL=C sort -k 2 <<<"$sums" >"$dist/SHA256SUMS"
log "$dist/SHA256SUMS has ${#files[@]} files"
