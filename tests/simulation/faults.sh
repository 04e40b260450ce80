#!/usr/bin/env bash
# Puts each fault of tests/simulation/faults back, one by one, in a copy of this checkout, and prints the seed with which the simulation
# finds it. Fails if the simulation does not find one, or if a patch does not apply. FAULTS=NAME selects one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seeds=${SEEDS:-10000} patience=${PATIENCE:-600}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$target/simulation-faults
mkdir -p "$copy"
export CARGO_TARGET_DIR=$copy/target

missed=0
for patch in tests/simulation/faults/${FAULTS:-*}.patch; do
  name=$(basename "$patch" .patch)
  # Files that did not change keep their times, so that little is compiled again.
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    cmp --silent "$file" "$copy/tree/$file" && continue
    mkdir -p "$copy/tree/$(dirname "$file")"
    cp --no-dereference --remove-destination "$file" "$copy/tree/$file"
  done
  patch --quiet --directory "$copy/tree" --strip 1 <"$patch"
  (cd "$copy/tree" && cargo build --quiet --locked --release --package kube-unions-simulation)
  started=$SECONDS
  status=0
  found=$(timeout "$patience" "$CARGO_TARGET_DIR/release/simulate" --seeds "$seeds" --failures 1) || status=$?
  case $status in
    1) echo "$name: $((SECONDS - started)) s: $(head -n 1 <<<"$found")" ;;
    124) echo "$name: NOT FOUND in $patience s" ;;
    *) echo "$name: NOT FOUND, exit code $status: $(tail -n 1 <<<"$found")" ;;
  esac
  missed=$((missed + (status != 1)))
done
exit $((missed > 0))
