#!/usr/bin/env bash
# Writes the archive of one platform: the program, its completions and manual pages, and the licence. The same commit and the same
# binary give the same archive. It has no links, because krew refuses them.
#
#   dist.sh PLATFORM     linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64
#
#   BINARY=FILE          packs this binary instead of building one
#   DIST_RUN=PROGRAM     runs the binary with this program, for example qemu-aarch64-static
#   DIST_CARGO=COMMAND   builds with this command: `cargo auditable` by default
#   DIST_PROFILE=NAME    builds with this profile: `release` by default
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

binary=${BINARY:-}
if [ -z "$binary" ]; then
  cargo=${DIST_CARGO:-cargo auditable}
  profile=${DIST_PROFILE:-release}
  if [ "${platform%/*}" = linux ]; then
    # The binary of the image.
    make -s image-contents CARGO="$cargo" IMAGE_PLATFORM="$platform" IMAGE_PROFILE="$profile" CONTENTS="$folder/contents" >&2
    binary=$folder/contents/usr/local/bin/kube-unions
  else
    read -ra command <<<"$cargo"
    "${command[@]}" build --locked --profile "$profile" --all-features --bin kube-unions --target "$triple" >&2
    binary=${CARGO_TARGET_DIR:-target}/$triple/${profile/#dev/debug}/kube-unions
  fi
fi
[ -f "$binary" ] || fail "there is no binary \`$binary\`"

run() {
  if [ -n "${DIST_RUN:-}" ]; then "$DIST_RUN" "$binary" "$@"; else "$binary" "$@"; fi
}
said=$(run version) || fail "\`$binary\` does not run here: build each platform on a machine of its own, or set DIST_RUN"
[ "$said" = "kube-unions $version" ] || fail "\`$binary\` says that it is \`$said\`, and the version of the workspace is $version"

file=$(archive "$platform")
top=$(basename "$file" .tar.gz)
mkdir -p "$folder/$top/completions" "$dist"
install -m 0755 "$binary" "$folder/$top/kube-unions"
install -m 0644 LICENSE "$folder/$top/LICENSE"
run man "$folder/$top/man"
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
