#!/usr/bin/env bash
# Runs each program of tests/users, which depends on one crate of this repository as a user's crate does, compares its
# output with expected.txt, and prints how many crates it depends on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/users"
# One folder for all, whose dependencies are built once.
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
export CARGO_TARGET_DIR

for program in */; do
  program=${program%/}
  output=$(cargo run --quiet --locked --manifest-path "$program/Cargo.toml")
  diff <(echo "$output") "$program/expected.txt" || {
    echo "tests/users/$program: the output differs from expected.txt" >&2
    exit 1
  }
  # Without the program itself.
  crates=$(cargo tree --locked --manifest-path "$program/Cargo.toml" --edges normal --prefix none --no-dedupe | sort -u | tail -n +2 | wc -l)
  echo "tests/users/$program: as expected, with $crates crates in its dependency tree"
done
