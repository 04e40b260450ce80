#!/usr/bin/env bash
# Checks that the contents of the image for arm64 run: cross-compiles them with the debug profile, and runs the binary under
# qemu-aarch64-static, where it answers a review over TLS. `make cross-tools` installs the compiler and the emulator.
#
#   KUBE_UNIONS_IMAGE_ROOT=DIR    uses these contents instead of making them, which takes minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/image/checks.sh
. tests/image/checks.sh
fail() {
  log "$*"
  exit 1
}

tools=(aarch64-linux-gnu-gcc)
run=(qemu-aarch64-static)
if [ "$(uname -m)" = aarch64 ]; then
  tools=()
  run=()
fi
for tool in "${tools[@]}" "${run[@]}"; do
  command -v "$tool" >/dev/null || fail "there is no $tool: run \`make cross-tools\` as root, on Debian or Ubuntu"
done

folder=$(mktemp -d)
server=
end() {
  [ -z "$server" ] || kill -s KILL "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

root=${KUBE_UNIONS_IMAGE_ROOT:-}
if [ -z "$root" ]; then
  # The rehearsal of a release publishes these contents.
  root=$(realpath -m "${CARGO_TARGET_DIR:-target}")/image-arm64
  rm -rf "$root"
  CARGO_PROFILE_DEV_DEBUG=0 make -s image-contents IMAGE_PLATFORM=linux/arm64 IMAGE_PROFILE=dev CONTENTS="$root" >&2
fi
binary=$root/usr/local/bin/kube-unions-webhook
machine=$(readelf --file-header "$binary" | sed -n 's/^ *Machine: *//p')
[ "$machine" = AArch64 ] || fail "the binary is for $machine"
run+=("$binary")
check_contents "$root"
check_version "${run[@]}"

"${CARGO:-cargo}" run --quiet --locked --package kube-unions --bin kube-unions -- certs --dir "$folder/tls" --host 127.0.0.1 2>/dev/null
: >"$folder/log"
"${run[@]}" serve --from manifests/samples/rollout --bind 127.0.0.1:0 --ops-bind 127.0.0.1:0 --tls-cert-dir "$folder/tls" \
  --shutdown-delay 0s --log-format json 2>>"$folder/log" &
server=$!
wait_until_ready "$server" 120
check_review "$folder/tls/ca.crt"
kill -s TERM "$server"
ending=$server
server=
check_end "$ending"
log "the binary for arm64 answers a review over TLS, and ends with 0 after SIGTERM"
