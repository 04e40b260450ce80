#!/usr/bin/env bash
# Runs the contents of the image as a container engine would: as the user 65532 without capabilities, with FOLDER as its
# read-only root, and with a new environment. Unlike with an engine, there is no /proc and no /dev. Signals reach the program,
# because it replaces this process.
#
#   run.sh FOLDER ARGUMENT...      passes on only KUBERNETES_* and RUST_LOG of the environment
#
# Uses chroot as root, and user namespaces as another user. Needs util-linux 2.36 or newer.
set -euo pipefail

root=$(cd "$1" && pwd)
shift
environment=(PATH=/usr/local/bin)
while IFS='=' read -r name value; do
  case "$name" in KUBERNETES_* | RUST_LOG) environment+=("$name=$value") ;; esac
done < <(env)
unshare=$(command -v unshare) || { echo "run.sh: there is no \`unshare\`: install util-linux" >&2; exit 125; }

# True for the root of this machine. In a user namespace, other users may not exist.
if [ "$(id -u)" = 0 ] && grep -Eq '^ *0 +0 +4294967295$' /proc/self/uid_map; then
  outer=(--mount --propagation private)
  inner=(--setgid 65532 --setuid 65532)
else
  outer=(--user --map-root-user --mount)
  inner=(--user --map-user=65532 --map-group=65532)
fi

# Only a mount can be made read-only for one namespace, so the folder becomes one.
# shellcheck disable=SC2016 # The inner shell expands it.
exec "$unshare" "${outer[@]}" sh -euc '
  root=$1
  shift
  mount --bind "$root" "$root"
  mount -o remount,bind,ro "$root"
  exec "$@"
' sh "$root" env -i "${environment[@]}" "$unshare" "${inner[@]}" --root="$root" /usr/local/bin/kube-unions-webhook "$@"
