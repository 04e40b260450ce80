#!/usr/bin/env bash
# Checks without a container engine that the image is complete. Makes the contents of the Dockerfile's last stage, with the
# command that the Dockerfile calls and from the same build context, and runs them as an engine would (image/run.sh). It does
# not build the image: `make image` does.
#
# Needs root or user namespaces, and the control plane of the end-to-end tests (KUBE_UNIONS_E2E=skip skips that part).
#   KUBE_UNIONS_IMAGE=skip        skips everything, on machines without root and user namespaces
#   KUBE_UNIONS_IMAGE_ROOT=DIR    uses these contents instead of making them, which takes minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=tests/image/checks.sh
. tests/image/checks.sh
fail() {
  log "$*"
  exit 1
}

if [ "${KUBE_UNIONS_IMAGE:-}" = skip ]; then
  log "skipped, because KUBE_UNIONS_IMAGE=skip"
  exit 0
fi
as_root=()
[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
unshare "${as_root[@]}" --mount --pid --fork true 2>/dev/null ||
  fail "this needs root or user namespaces, and neither is available; set KUBE_UNIONS_IMAGE=skip to skip it"

folder=$(mktemp -d)
# The user 65532 must be able to enter.
chmod 0755 "$folder"
engine=
end() {
  [ -z "$engine" ] || kill -s KILL "$engine" 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

# Lines of the Dockerfile that this script or image/run.sh repeats.
toolchain=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
for line in "FROM rust:$toolchain-bookworm AS build" "ENV RUSTUP_TOOLCHAIN=$toolchain" "FROM scratch" \
  "COPY --from=build /contents/ /" "ENV PATH=/usr/local/bin" "USER 65532:65532" \
  'ENTRYPOINT ["/usr/local/bin/kube-unions-webhook"]'; do
  grep -qxF "$line" Dockerfile || fail "the Dockerfile no longer has the line \`$line\`: update this script"
done

root=${KUBE_UNIONS_IMAGE_ROOT:-}
if [ -z "$root" ]; then
  root=$folder/contents
  target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
  # A fixed path, so that unchanged files are not built again.
  context=$target/image-context
  rm -rf "$context"
  mkdir -p "$context"
  while read -r path; do
    cp -R --parents --preserve=timestamps "$path" "$context"
  done < <(sed -n 's/^!//p' .dockerignore)
  RUSTUP_TOOLCHAIN=$toolchain CARGO_TARGET_DIR=$target make -s -C "$context" image-contents CONTENTS="$root" >&2
  # The folder of `make image-contents`, for the rehearsal of a release.
  rm -rf "$target/image"
  cp -R "$root" "$target/image"
fi

check_contents "$root"
check_version tests/image/run.sh "$root"
binary=$root/usr/local/bin/kube-unions-webhook

# A pod: the image with its mounts.
pod=$folder/pod
cp -R "$root" "$pod"
mkdir "$pod/samples"
cp -R manifests/samples/rollout "$pod/samples"
"${CARGO:-cargo}" run --quiet --locked --package kube-unions --bin kube-unions -- certs --dir "$pod/etc/kube-unions/tls" --host 127.0.0.1 2>/dev/null
# The pod's fsGroup does the same to a mounted Secret.
chmod -R a+rX "$pod/etc/kube-unions"

# The root is read-only and has no temporary folder: a flag that needs one fails with one line.
serve=(serve --from /samples --bind 127.0.0.1:0 --ops-bind 127.0.0.1:0)
if said=$(tests/image/run.sh "$pod" "${serve[@]}" --tls-self-signed 2>&1); then
  fail "it wrote a file into a read-only root"
fi
[ "$(wc -l <<<"$said")" = 1 ] || fail "without a temporary folder it prints more than one line: $said"

: >"$folder/log"
# As process 1: the kernel drops signals that process 1 does not handle.
unshare "${as_root[@]}" --pid --fork --kill-child tests/image/run.sh "$pod" "${serve[@]}" \
  --tls-cert-dir /etc/kube-unions/tls --shutdown-delay 0s --log-format json 2>>"$folder/log" &
engine=$!
wait_until_ready "$engine" 30
process=$(pgrep -P "$engine")
[ "$(awk '/^NSpid:/ { print $NF }' "/proc/$process/status")" = 1 ] || fail "it is not process 1"
awk '/^CapEff:/ && $2 !~ /^0*$/ { exit 1 }' "/proc/$process/status" || fail "it has capabilities"

check_review "$pod/etc/kube-unions/tls/ca.crt"
kill -s TERM "$process"
ending=$engine
engine=
check_end "$ending"
log "answers a review over TLS as process 1 of user 65532 without capabilities, and ends with 0 after SIGTERM"

# A pod also finds its cluster and watches it.
if [ "${KUBE_UNIONS_E2E:-}" = skip ]; then
  log "skipped, because KUBE_UNIONS_E2E=skip: finding a cluster as a pod does"
  exit 0
fi
make -s assets >/dev/null
KUBE_UNIONS_IMAGE_ROOT=$root KUBE_UNIONS_WEBHOOK_BIN=$binary KUBE_UNIONS_BIN=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/kube-unions \
  cargo test --quiet --locked --workspace --all-features --test e2e image:: >&2
