#!/usr/bin/env bash
# Prints the sizes that a maintainer watches, in lines. Shipped Rust is counted up to the first test module of each file, without the files
# that are test modules.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tracked() { git ls-files -- "$@" | while read -r file; do [ -L "$file" ] || echo "$file"; done; }
lines() { tracked "$@" | xargs cat | wc -l; }
shipped() {
  tracked "$@" | grep -vE '/(tests|simulation)\.rs$' | xargs awk '
    FNR == 1 { cut = 0; test = 0 }
    /^#\[cfg\(test\)\]$/ { test = 1; next }
    test && /^mod .*\{$/ { cut = 1 }
    { test = 0 }
    !cut { lines++ }
    END { print lines }'
}

row() { printf '%-28s %7d\n' "$1" "$2"; }
row "shipped Rust" "$(shipped 'src/*.rs' 'crates/*/src/*.rs')"
row "  core" "$(shipped 'crates/core/src/*.rs')"
row "  src/follow" "$(shipped 'src/follow.rs' 'src/follow/*.rs')"
row "  src/api, controllers" "$(shipped 'src/api.rs' 'src/api/*.rs' 'src/controllers.rs' 'src/controllers/*.rs')"
row "  src/webhook" "$(shipped 'src/webhook.rs' 'src/webhook/*.rs')"
row "  src/cli" "$(shipped 'src/cli.rs' 'src/cli/*.rs')"
row "tests, Rust and YAML" "$(lines 'tests/*.rs' 'tests/*.yaml' 'crates/*/tests/*.rs' 'crates/*/tests/*.yaml' \
  '*/src/*/tests.rs' 'src/*/tests.rs' 'src/*/simulation.rs')"
row "pages of sessions" "$(lines 'tests/it/cli/sessions/*.md')"
row "charts" "$(lines charts)"
row "files of fewer than 60 lines" "$(tracked 'src/*.rs' 'crates/*/src/*.rs' | xargs wc -l | awk '$2 != "total" && $1 < 60' | wc -l)"
