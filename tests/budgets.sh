#!/usr/bin/env bash
# Prints the sizes that a maintainer watches, by product: thousands of characters of code. A line of code is neither blank nor a comment, and
# counts without its indentation, so that neither long nor short lines pay. Modules of tests do not count. Prints the crates that the program
# of the image links, and its bytes if it is built.
# shellcheck disable=SC2016 # The programs of awk and sed have a syntax of their own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tracked() { git ls-files -- "$@" | while read -r file; do [ -L "$file" ] || echo "$file"; done; }
# code FOLDER...: characters of code of the sources in these folders.
code() {
  tracked "${@/%//*.rs}" | grep -vE '/(tests|simulation)(\.rs|/)' | xargs awk '
    FNR == 1 { cut = 0; test = 0 }
    { gsub(/^[ \t]+|[ \t]+$/, "") }
    /^#\[cfg\(test\)\]$/ { test = 1; next }
    test && /^mod .*\{$/ { cut = 1 }
    { test = 0 }
    !cut && $0 != "" && $0 !~ /^\/\// { characters += length($0) }
    END { printf "%.0f\n", characters / 1000 }'
}
linked() {
  "${CARGO:-cargo}" tree --locked --package kube-unions-webhook --edges normal --prefix none "$@" | awk '{ print $1, $2 }' | sort -u | wc -l
}

row() { printf '%-76s %7s  %s\n' "$1" "$2" "$3"; }
row "product" "today" "goal"
row "webhook: src, api and core" "$(code src crates/api/src crates/core/src)" 700
row "  core" "$(code crates/core/src)" ""
row "policies" "$(code crates/policies/src)" 170
row "authoring: cli, command, manifests, offline, evidence, go, author, playground" \
  "$(code crates/{cli,command,manifests,offline,evidence,go,author,playground}/src)" 600
row "patches: strategic, strategic-stdio" "$(code crates/{strategic,strategic-stdio}/src)" 170
row "all" "$(code src crates/*/src)" 1640
row "crates that kube-unions-webhook links, without otlp" "$(linked)" 195
row "  in the image" "$(linked --all-features)" ""
binary=${CARGO_TARGET_DIR:-target}/image/usr/local/bin/kube-unions-webhook
row "megabytes of kube-unions-webhook in the image" "$([ -f "$binary" ] && du --bytes "$binary" | awk '{ printf "%.1f", $1 / 1e6 }' || echo "not built")" 18
row "words of CONTRIBUTING.md without its diagram" "$(sed '/^```mermaid$/,/^```$/d' CONTRIBUTING.md | wc -w)" 1200
