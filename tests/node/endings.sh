#!/usr/bin/env bash
# Checks that tests/node.sh passes on the exit code of a command, and that nothing is left when it ends: by itself, by SIGTERM, or by
# SIGKILL, after which the next run cleans up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/node/leftovers.sh
. tests/node/leftovers.sh

log() { echo "node: $*" >&2; }
fail() {
  log "$*"
  exit 1
}

# The runs of this script have a folder of their own.
folder=$(mktemp -d)
export TMPDIR=$folder/runs
mkdir "$TMPDIR"
run=
end() {
  [ -z "$run" ] || kill -s KILL "$run" 2>/dev/null || true
  delete_leftovers
  rm -rf --one-file-system "$folder"
}
trap end EXIT

# left NAME: the processes, control groups and folder of a run that still exist.
left() {
  local hierarchy
  if [ -d "$TMPDIR/$1" ]; then echo "$TMPDIR/$1"; fi
  while IFS= read -r hierarchy; do
    if [ -d "$hierarchy/$1" ]; then find "$hierarchy/$1" -type d; fi
  done < <(cgroup_hierarchies)
}

# start FILE: runs a pod in a cluster, and sets `run` to the script's process and `name` to the run's name, which the run writes into the
# file.
start() {
  # shellcheck disable=SC2016 # The command expands it.
  tests/node.sh bash -euc '
    kubectl run forever --image=kube-unions-pause:dev --image-pull-policy=Never >&2
    kubectl wait --for=condition=Ready --timeout=60s pod/forever >&2
    basename "$(dirname "$KUBECONFIG")" >"$1"
    exec sleep infinity
  ' bash "$folder/$1" &
  run=$!
  until name=$(cat "$folder/$1" 2>/dev/null) && [ -n "$name" ]; do
    kill -0 "$run" 2>/dev/null || fail "the run ended before its pod was ready"
    read -r -t 0.1 <> <(:) || true
  done
  [ -n "$(left "$name")" ] || fail "$name has no folder and no control groups"
}

mounts=$(wc -l </proc/mounts)
status=0
tests/node.sh sh -c 'exit 7' || status=$?
[ "$status" = 7 ] || fail "the command's exit code 7 became $status"

start terminated
kill -s TERM "$run"
status=0
wait "$run" || status=$?
run=
[ "$status" = 143 ] || fail "after SIGTERM it exits with $status"
[ -z "$(left "$name")" ] || fail "after SIGTERM there is left: $(left "$name")"

start killed
kill -s KILL "$run"
wait "$run" 2>/dev/null || true
run=
# The kernel ends the processes of the run, which hold its lock.
flock --exclusive --timeout 60 "$TMPDIR/$name/lock" true || fail "after SIGKILL $name still has processes"
tests/node.sh true
[ -z "$(left "$name")" ] || fail "after SIGKILL and another run there is left: $(left "$name")"
[ "$(wc -l </proc/mounts)" = "$mounts" ] || fail "there are other mounts than before: $(cat /proc/mounts)"
log "passes on exit codes; nothing is left after an end, SIGTERM, and SIGKILL with another run"
