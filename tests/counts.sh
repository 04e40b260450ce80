# shellcheck shell=bash
#
# Counts the end-to-end tests in what `cargo test` printed. A test that cannot check anything passes, and says that it is left out.

# `left_out LOG [REASON]` prints the names of the tests that are left out, with a reason that begins so. The line of a test ends with its
# name.
left_out() { sed -nE "s/^left out, ${2:-}.*: ([a-z_:0-9]+)\$/\1/p" "$1" | sort -u; }

# `checked LOG` prints how many tests passed and were not left out. Fails if there is none.
checked() {
  local passed
  passed=$(sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$1")
  passed=$((${passed:-0} - $(left_out "$1" | wc -l)))
  [ "$passed" -gt 0 ] && echo "$passed"
}
