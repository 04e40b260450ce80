#!/usr/bin/env bash
# Runs what the image holds as a container engine would, without one: the program as process of the user 65532, who has
# no capabilities, in the folder as its root, which is read-only, with an environment of its own. Stricter than an
# engine in one thing: there is no /proc and no /dev. Signals reach the program: its process id is that of this script.
#
#   run.sh FOLDER ARGUMENT...      KUBERNETES_* and RUST_LOG of the environment are passed on, and nothing else
#
# As root that is a chroot; as another user it takes user namespaces. Needs util-linux 2.36 or newer.
set -euo pipefail

root=$(cd "$1" && pwd)
shift
environment=(PATH=/usr/local/bin)
while IFS='=' read -r name value; do
  case "$name" in KUBERNETES_* | RUST_LOG) environment+=("$name=$value") ;; esac
done < <(env)
unshare=$(command -v unshare) || { echo "run.sh: there is no \`unshare\`: install util-linux" >&2; exit 125; }

# The root of this machine, not of a user namespace, where no other user may exist.
if [ "$(id -u)" = 0 ] && grep -Eq '^ *0 +0 +4294967295$' /proc/self/uid_map; then
  outer=(--mount --propagation private)
  inner=(--setgid 65532 --setuid 65532)
else
  outer=(--user --map-root-user --mount)
  inner=(--user --map-user=65532 --map-group=65532)
fi

# A folder can be made read-only for one namespace once it is a mount of its own.
# shellcheck disable=SC2016 # The inner shell expands it.
exec "$unshare" "${outer[@]}" sh -euc '
  root=$1
  shift
  mount --bind "$root" "$root"
  mount -o remount,bind,ro "$root"
  exec "$@"
' sh "$root" env -i "${environment[@]}" "$unshare" "${inner[@]}" --root="$root" /usr/local/bin/kube-unions "$@"
