#!/usr/bin/env bash
# Builds every fuzz target into the folder OUT, each with its corpus. ClusterFuzzLite calls it in the image of the Dockerfile.
set -euo pipefail

cargo +nightly fuzz build --fuzz-dir tests/fuzz --release
for target in tests/fuzz/targets/*.rs; do
  name=$(basename "$target" .rs)
  cp "tests/fuzz/target/x86_64-unknown-linux-gnu/release/$name" "$OUT/"
  zip --quiet --junk-paths --recurse-paths "$OUT/${name}_seed_corpus.zip" "tests/fuzz/corpus/$name"
done
