# shellcheck shell=bash
# shellcheck disable=SC2154 # The scripts that source this file set `folder`.
#
# Checks of the image's contents that tests/image.sh and tests/image/arm64.sh share. Both source this file, define `fail`, and set
# `folder` to a temporary folder.

log() { echo "image: $*" >&2; }

# check_contents ROOT: exactly these files, and a binary that loads nothing.
check_contents() {
  local contents expected loaded
  contents=$(cd "$1" && find . ! -type d -printf '/%P %M\n' | sort)
  expected='/licenses/LICENSE -rw-r--r--
/usr/local/bin/kube-unions-webhook -rwxr-xr-x'
  [ "$contents" = "$expected" ] || fail "unexpected contents:"$'\n'"$contents"
  if loaded=$(readelf --program-headers --dynamic --wide "$1/usr/local/bin/kube-unions-webhook" | grep -E 'INTERP|NEEDED'); then
    fail "the binary is not static: $loaded"
  fi
  log "$(awk '{ print $1 }' <<<"$contents" | paste -sd ' '), no shared library, $(du -sb "$1" | cut -f1) bytes in all"
}

# check_version COMMAND...: the program that the command runs has the version of the workspace, and a help.
check_version() {
  local version help
  version=$("$@" version)
  help=$("$@" help)
  grep -qxF "version = \"${version#kube-unions-webhook }\"" Cargo.toml || fail "it says it is \`$version\`"
  grep -q '^Usage: kube-unions-webhook' <<<"$help" || fail "it prints no help"
  log "$version and its help"
}

# address webhook|ops: the address in the log of `serve`.
address() { sed -n "s/.*\"message\":\"listening\".*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/log"; }

# wait_until_ready PROCESS SECONDS
wait_until_ready() {
  local deadline=$((SECONDS + $2))
  until [ -n "$(address ops)" ] && curl -fsS -o /dev/null "http://$(address ops)/readyz" 2>/dev/null; do
    if ! kill -0 "$1" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      fail "it did not become ready:"$'\n'"$(cat "$folder/log")"
    fi
    read -r -t 0.1 <> <(:) || true
  done
}

# check_review CA: the answer over TLS to the review of the samples clears the other member.
check_review() {
  local answer patch
  answer=$(curl -fsS --cacert "$1" -H 'Content-Type: application/json' \
    --data-binary @manifests/samples/review.json "https://$(address webhook)/mutate")
  patch=$(sed -n 's/.*"patch":"\([^"]*\)".*/\1/p' <<<"$answer" | base64 -d)
  [ "$patch" = '[{"op":"remove","path":"/spec/strategy/rollingUpdate"}]' ] || fail "it answers a review with $answer"
}

# check_end PROCESS: it ended with 0 after SIGTERM.
check_end() {
  local status=0
  wait "$1" || status=$?
  [ "$status" = 0 ] || fail "after SIGTERM it ended with $status:"$'\n'"$(cat "$folder/log")"
}
