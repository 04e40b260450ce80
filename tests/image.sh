#!/usr/bin/env bash
# Shows without a container engine that the image lacks nothing: makes what the Dockerfile's last stage holds, by the
# command that the Dockerfile calls, from no more files than an engine would be sent, and runs it as an engine would
# (image/run.sh). It does not build the image itself: `make image` does, where there is an engine.
#
# Needs root or user namespaces, and the control plane of the end-to-end tests (KUBE_UNIONS_E2E=skip leaves that part
# out).
#   KUBE_UNIONS_IMAGE=skip        leaves everything out, where neither can be had
#   KUBE_UNIONS_IMAGE_ROOT=DIR    takes these contents instead of making them, which costs minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "image: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

if [ "${KUBE_UNIONS_IMAGE:-}" = skip ]; then
  say "skipped, since KUBE_UNIONS_IMAGE=skip"
  exit 0
fi
as_root=()
[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
unshare "${as_root[@]}" --mount --pid --fork true 2>/dev/null ||
  fail "this takes root or user namespaces, and neither can be had here; KUBE_UNIONS_IMAGE=skip leaves it out"

folder=$(mktemp -d)
# The user 65532 is to get in.
chmod 0755 "$folder"
engine=
end() {
  [ -z "$engine" ] || kill -s KILL "$engine" 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

# What the Dockerfile says, where this script or image/run.sh says it again.
toolchain=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
for line in "FROM rust:$toolchain-bookworm AS build" "ENV RUSTUP_TOOLCHAIN=$toolchain" "FROM scratch" \
  "COPY --from=build /contents/ /" "ENV PATH=/usr/local/bin" "USER 65532:65532" \
  'ENTRYPOINT ["/usr/local/bin/kube-unions"]'; do
  grep -qxF "$line" Dockerfile || fail "the Dockerfile has no line \`$line\` any more: bring this in step with it"
done

root=${KUBE_UNIONS_IMAGE_ROOT:-}
if [ -z "$root" ]; then
  root=$folder/contents
  target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
  # The same place each time, so that what did not change is not built again.
  context=$target/image-context
  rm -rf "$context"
  mkdir -p "$context"
  while read -r path; do
    cp -R --parents --preserve=timestamps "$path" "$context"
  done < <(sed -n 's/^!//p' .dockerignore)
  RUSTUP_TOOLCHAIN=$toolchain CARGO_TARGET_DIR=$target make -s -C "$context" image-contents CONTENTS="$root" >&2
fi

contents=$(cd "$root" && find . ! -type d -printf '/%P %M\n' | sort)
expected='/licenses/LICENSE -rw-r--r--
/usr/local/bin/kube-unions -rwxr-xr-x'
[ "$contents" = "$expected" ] || fail "the contents are others than those that are known here:"$'\n'"$contents"
binary=$root/usr/local/bin/kube-unions
if loaded=$(readelf --program-headers --dynamic --wide "$binary" | grep -E 'INTERP|NEEDED'); then
  fail "the binary is not static: $loaded"
fi
say "$(awk '{ print $1 }' <<<"$contents" | paste -sd ' '), no shared library, $(du -sb "$root" | cut -f1) bytes in all"

version=$(tests/image/run.sh "$root" version)
grep -qxF "version = \"${version#kube-unions }\"" Cargo.toml || fail "it says it is \`$version\`"
tests/image/run.sh "$root" help | grep -q '^Usage: kube-unions' || fail "it prints no help"
say "$version and its help, from the empty root"

# A pod: the image with what is mounted into it.
pod=$folder/pod
cp -R "$root" "$pod"
mkdir "$pod/samples"
cp -R manifests/samples/rollout "$pod/samples"
"$binary" certs --dir "$pod/etc/kube-unions/tls" --host 127.0.0.1 2>/dev/null
# As the pod's fsGroup makes it of a Secret that is mounted.
chmod -R a+rX "$pod/etc/kube-unions"

# The root is read-only, and no folder for temporary files is there: what asks for one is told so in one line.
serve=(serve --from /samples --bind 127.0.0.1:0 --ops-bind 127.0.0.1:0)
if said=$(tests/image/run.sh "$pod" "${serve[@]}" --tls-self-signed 2>&1); then
  fail "it wrote a file into a root that was to be read-only"
fi
[ "$(wc -l <<<"$said")" = 1 ] || fail "without a folder for temporary files it says more than one line: $said"

: >"$folder/log"
# As process 1, which the kernel protects from signals that it does not handle.
unshare "${as_root[@]}" --pid --fork --kill-child tests/image/run.sh "$pod" "${serve[@]}" \
  --tls-cert-dir /etc/kube-unions/tls --shutdown-delay 0s --log-format json 2>>"$folder/log" &
engine=$!
address() { sed -n "s/.*\"message\":\"listening\".*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/log"; }
deadline=$((SECONDS + 30))
until [ -n "$(address ops)" ] && curl -fsS -o /dev/null "http://$(address ops)/readyz" 2>/dev/null; do
  if ! kill -0 "$engine" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
    fail "it did not become ready:"$'\n'"$(cat "$folder/log")"
  fi
  read -r -t 0.1 <> <(:) || true
done
process=$(pgrep -P "$engine")
[ "$(awk '/^NSpid:/ { print $NF }' "/proc/$process/status")" = 1 ] || fail "it was to be process 1"
awk '/^CapEff:/ && $2 !~ /^0*$/ { exit 1 }' "/proc/$process/status" || fail "it was to have no capabilities"

answer=$(curl -fsS --cacert "$pod/etc/kube-unions/tls/ca.crt" -H 'Content-Type: application/json' \
  --data-binary @manifests/samples/review.json "https://$(address webhook)/mutate")
patch=$(sed -n 's/.*"patch":"\([^"]*\)".*/\1/p' <<<"$answer" | base64 -d)
[ "$patch" = '[{"op":"remove","path":"/spec/strategy/rollingUpdate"}]' ] || fail "it answers a review with $answer"
kill -s TERM "$process"
status=0
wait "$engine" || status=$?
engine=
[ "$status" = 0 ] || fail "after SIGTERM it ended with $status:"$'\n'"$(cat "$folder/log")"
say "answers a review over TLS as process 1 of user 65532 without capabilities, and ends with 0 after SIGTERM"

# The rest of what a pod does: find its cluster and watch it.
if [ "${KUBE_UNIONS_E2E:-}" = skip ]; then
  say "left out, since KUBE_UNIONS_E2E=skip: finding a cluster as a pod does"
  exit 0
fi
make -s assets >/dev/null
KUBE_UNIONS_IMAGE_ROOT=$root KUBE_UNIONS_BIN=$binary cargo test --quiet --locked --all-features --test e2e image:: >&2
