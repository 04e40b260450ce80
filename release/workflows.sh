#!/usr/bin/env bash
# Checks the workflows: actionlint, and that each action of somebody else is pinned by commit with its version in a comment.
#
#   ACTIONLINT=FILE     the program actionlint, which `make release-tools` builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

files=(.github/workflows/*.yml)
[ -f "${files[0]}" ] || fail "there is no workflow in .github/workflows"
uses=$(grep -nE '^[ -]*uses:' "${files[@]}" action.yml | grep -vE 'uses: \./' || true)
[ -n "$uses" ] || fail "no workflow uses an action: nothing to check"
if loose=$(grep -vE 'uses: [A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+@[0-9a-f]{40} # v[0-9]+(\.[0-9]+)*$' <<<"$uses"); then
  fail "pin these actions by commit, with the version in a comment: \`uses: owner/name@<40 digits> # v1.2.3\`"$'\n'"$loose"
fi
"${ACTIONLINT:?name the program actionlint}" -no-color -pyflakes= -shellcheck="$(command -v shellcheck || true)" "${files[@]}"
log "${#files[@]} workflows, $(wc -l <<<"$uses") actions pinned by commit, no findings"
