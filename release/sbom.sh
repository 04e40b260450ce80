#!/usr/bin/env bash
# Writes the SBOM of each program, CycloneDX as JSON, with every crate that it is built from. Needs cargo-cyclonedx.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

# cargo-cyclonedx writes beside each Cargo.toml, so it runs in a copy of what is committed or changed here.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null |
  tar --extract --directory "$folder"
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(epoch)
(cd "$folder" && cargo cyclonedx --quiet --format json --spec-version 1.5 --all-features --override-filename release-sbom \
  --target all --no-build-deps --manifest-path Cargo.toml)
mkdir -p "$dist"
for program in kube-unions:crates/cli kube-unions-webhook:.; do
  file=$dist/${program%:*}-$version.cdx.json
  # The same commit gives the same SBOM: it does not name the folder of the copy.
  sed "s|$folder|/kube-unions|g" "$folder/${program#*:}/release-sbom.json" >"$file"
  crates=$(grep -c '"purl": "pkg:cargo/' "$file") || fail "\`$file\` names no crate"
  log "$file names $crates crates"
done
