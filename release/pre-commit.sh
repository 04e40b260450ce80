#!/usr/bin/env bash
# Runs kube-unions for pre-commit (.pre-commit-hooks.yaml). The first run builds it from the revision that a project pins, so that nobody
# installs it by hand and all have the same version. Needs Rust.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
exec "${CARGO:-cargo}" run --quiet --release --locked --manifest-path "$root/Cargo.toml" --package kube-unions --bin kube-unions -- "$@"
