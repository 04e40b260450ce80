# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The scripts that source this file use its variables, and set `crane`.
#
# An OCI registry on loopback. The script that sources this file sets `crane` and calls `end_registry` when it exits.

registry_process=

# start_registry FOLDER: keeps its log in the folder and everything that is pushed in memory, and sets `registry` to its address.
start_registry() {
  local log=$1/registry.log port deadline=$((SECONDS + 30))
  : >"$log"
  "$crane" registry serve --address 127.0.0.1:0 >"$log" 2>&1 &
  registry_process=$!
  until port=$(sed -n 's/.*serving on port \([0-9]*\)$/\1/p' "$log") && [ -n "$port" ]; do
    if ! kill -0 "$registry_process" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      fail "the registry on loopback did not start: $(cat "$log")"
    fi
    read -r -t 0.1 <> <(:) || true
  done
  registry=127.0.0.1:$port
}

end_registry() {
  [ -z "$registry_process" ] || kill "$registry_process" 2>/dev/null || true
  registry_process=
}
