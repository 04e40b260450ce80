#!/usr/bin/env bash
# Changes the code of a room in one place at a time, by cargo-mutants, and runs the fast tests against each change. Fails if a change survives
# that tests/mutants/ROOM.txt does not list, with a reason above it, or if one is listed that a test catches.
# Usage: tests/mutants.sh [ROOM...]. SHARD=K/N takes a part of the changes, from 0/N on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each room with its crate, its files, the tests of this crate, and another crate whose tests run against what these miss.
rooms='
union       kube-unions-core     crates/core/src/union      lib,cases,it  kube-unions-policies
admission   kube-unions-core     crates/core/src/admission  lib,cases,it  kube-unions-policies
workspace   kube-unions-core     crates/core/src/workspace  lib,cases,it  kube-unions-manifests
controllers kube-unions-webhook  src/controllers            lib           kube-unions-simulation
follow      kube-unions-webhook  src/follow                 lib           kube-unions-simulation
'
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
export CARGO_PROFILE_DEV_DEBUG=0
unset CARGO_TARGET_DIR

# Runs the tests of a crate against changes that no earlier run caught. Usage: mutate PACKAGE TESTS FLAG...
mutate() {
  local package=$1 tests=$2 status=0 select=()
  shift 2
  [[ $tests == all ]] || select=(--lib)
  for test in ${tests//,/ }; do [[ $test == lib || $test == all ]] || select+=(--test "$test"); done
  cargo mutants --iterate --no-shuffle --line-col=false --colors never --output "$target/$room" --minimum-test-timeout 60 \
    --package "$crate" --file "$files.rs" --file "$files/**" --test-package "$package" "$@" -- "${select[@]}" -- --skip applies:: ||
    status=$?
  # 2: a change survived. 3: one ran into the deadline.
  [[ $status == [023] ]]
}

failed=0
[[ $# -gt 0 ]] || set -- union admission workspace controllers follow
for room in "$@"; do
  read -r _ crate files tests others < <(grep "^$room " <<<"$rooms") || { echo "$room: no such room" >&2; exit 2; }
  out=$target/$room/mutants.out
  rm -rf "${target:?}/$room"
  mkdir -p "$target/$room"
  mutate "$crate" "$tests" ${SHARD:+--shard "$SHARD"}
  viable=$(cat "$out"/{caught,missed,timeout}.txt | wc -l)
  cp "$out/caught.txt" "$target/$room/caught.txt"
  deadlines=$(wc -l <"$out/timeout.txt")
  if [[ -s $out/missed.txt ]]; then
    mapfile -t again < <(sed 's/^[^:]*: //; s/[][\\.*^$+?(){}|]/\\&/g; s/^/--re=/' "$out/missed.txt")
    mutate "$others" all "${again[@]}"
  fi
  sort --output "$target/$room/survived.txt" "$out/missed.txt"
  sort --unique --output "$target/$room/caught.txt" "$target/$room/caught.txt" "$out/caught.txt"
  sed '/^#/d; /^$/d' "tests/mutants/$room.txt" | sort >"$target/$room/listed.txt"
  echo "$room: of $viable viable changes, $(wc -l <"$target/$room/survived.txt") survive and $deadlines run into the deadline"
  cd "$target/$room"
  new=$(comm -23 survived.txt listed.txt | sed 's/^/not listed: /') gone=$(comm -12 caught.txt listed.txt | sed 's/^/listed, but caught: /')
  cd - >/dev/null
  [[ -z $new$gone ]] || { printf '%s\n%s\n' "$new" "$gone"; failed=1; }
done
exit "$failed"
