#!/usr/bin/env bash
# Prints the section of a version in CHANGELOG.md, without its heading.
#
#   notes.sh [VERSION]     VERSION is the version of the workspace by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

wanted=${1:-$version}
notes=$(WANTED=$wanted awk '
  /^## / { heading = $2; gsub(/[][]/, "", heading); within = heading == ENVIRON["WANTED"]; next }
  /^\[[^]]*\]: / { next }
  within { print }' CHANGELOG.md)
# Command substitution has removed the empty lines at the end.
notes=$(sed '/./,$!d' <<<"$notes")
grep -q '^- ' <<<"$notes" || fail "CHANGELOG.md has no entry for $wanted: add a section \`## [$wanted] - DATE\`"
printf '%s\n' "$notes"
