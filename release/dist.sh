#!/usr/bin/env bash
# Writes the archive of one platform: the command line, its completions and manual pages, and the licence. For Linux, it also writes the
# archive of the webhook, from which the image is made. The same commit and the same binaries give the same archives. They have no links,
# because krew refuses them.
#
#   dist.sh PLATFORM     linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64
#
#   BINARY=FILE          packs this command line instead of building one
#   WEBHOOK=FILE         packs this webhook instead of building one
#   DIST_RUN=PROGRAM     runs the binary with this program, for example qemu-aarch64-static
#   DIST_CARGO=COMMAND   builds with this command: `cargo auditable` by default
#   DIST_PROFILE=NAME    builds with this profile: `dist` by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

platform=${1:-}
case "$platform" in
  linux/amd64) triple=x86_64-unknown-linux-gnu ;;
  linux/arm64) triple=aarch64-unknown-linux-gnu ;;
  darwin/amd64) triple=x86_64-apple-darwin ;;
  darwin/arm64) triple=aarch64-apple-darwin ;;
  *) fail "unknown platform \`$platform\`: use linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64" ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cargo=${DIST_CARGO:-cargo auditable}
profile=${DIST_PROFILE:-dist}

# build PROGRAM: sets `binary`. On Linux a program is linked as that of the image.
build() {
  if [ "${platform%/*}" = linux ]; then
    make -s image-contents PROGRAM="$1" CARGO="$cargo" IMAGE_PLATFORM="$platform" IMAGE_PROFILE="$profile" CONTENTS="$folder/contents" >&2
    binary=$folder/contents/usr/local/bin/$1
  else
    local command
    read -ra command <<<"$cargo"
    "${command[@]}" build --locked --profile "$profile" --all-features --package "$1" --bin "$1" --target "$triple" >&2
    binary=${CARGO_TARGET_DIR:-target}/$triple/${profile/#dev/debug}/$1
  fi
}

run() {
  if [ -n "${DIST_RUN:-}" ]; then "$DIST_RUN" "$binary" "$@"; else "$binary" "$@"; fi
}

# check PROGRAM: `binary` runs here, and is this program in the version of the workspace.
check() {
  local said
  [ -f "$binary" ] || fail "there is no binary \`$binary\`"
  said=$(run version) || fail "\`$binary\` does not run here: build each platform on a machine of its own, or set DIST_RUN"
  [ "$said" = "$1 $version" ] || fail "\`$binary\` says that it is \`$said\`, and the version of the workspace is $version"
}

binary=${BINARY:-}
[ -n "$binary" ] || build kube-unions
check kube-unions

file=$(archive "$platform")
top=$(basename "$file" .tar.gz)
mkdir -p "$folder/$top/completions" "$dist"
install -m 0755 "$binary" "$folder/$top/kube-unions"
install -m 0644 LICENSE "$folder/$top/LICENSE"
run completion man "$folder/$top/man"
while read -r shell script; do
  run completion "$shell" >"$folder/$top/completions/$script"
done <<'END'
bash kube-unions.bash
zsh _kube-unions
fish kube-unions.fish
elvish kube-unions.elv
powershell kube-unions.ps1
END
pack "$folder" "$top" | gzip -9 -n >"$file.part"
mv "$file.part" "$file"
echo "$file"

if [ "${platform%/*}" = linux ]; then
  binary=${WEBHOOK:-}
  [ -n "$binary" ] || build kube-unions-webhook
  check kube-unions-webhook
  file=$(archive "$platform" kube-unions-webhook)
  top=$(basename "$file" .tar.gz)
  mkdir -p "$folder/$top" "$dist"
  install -m 0755 "$binary" "$folder/$top/kube-unions-webhook"
  install -m 0644 LICENSE "$folder/$top/LICENSE"
  pack "$folder" "$top" | gzip -9 -n >"$file.part"
  mv "$file.part" "$file"
  echo "$file"
fi
