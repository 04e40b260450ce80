#!/usr/bin/env bash
# Runs every fuzz target for some seconds, from its checked-in corpus. New inputs are not added to the repository.
#
#   FUZZ_CORPUS=DIR    also begins with the inputs in DIR, and keeps new ones there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:-20}
if ! rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
  echo "fuzz: the sanitizer needs a nightly tool chain: rustup toolchain install nightly" >&2
  exit 1
fi
if ! command -v cargo-fuzz >/dev/null 2>&1; then
  read -ra install <<< "${CARGO_INSTALL:-cargo install --locked}"
  "${install[@]}" cargo-fuzz
fi
cargo +nightly fuzz build --fuzz-dir .
for target in targets/*.rs; do
  target=$(basename "$target" .rs)
  if [ -n "${FUZZ_CORPUS:-}" ]; then
    found=$FUZZ_CORPUS/$target
    mkdir -p "$found"
  else
    found=$(mktemp -d)
  fi
  cargo +nightly fuzz run --fuzz-dir . "$target" "$found" "corpus/$target" -- -max_total_time="$seconds" -max_len=65536
  [ -n "${FUZZ_CORPUS:-}" ] || rm -rf "$found"
done
