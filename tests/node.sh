#!/usr/bin/env bash
# Runs a throw-away cluster of two real nodes as processes: etcd, the control plane of Kubernetes, containerd and kubelet. Needs no
# container engine.
#
#   node.sh                       runs the cluster until it is interrupted, and prints how to use it
#   node.sh COMMAND...            runs the command in the network of the cluster, with KUBECONFIG, and kubectl and helm on PATH. Exits as
#                                 the command does.
#   node.sh --check               says in one sentence what is missing, if this machine cannot run it
#   NODE_IMAGES="FILE..."         OCI archives to import: by default those of `make image-archive` and `make node-pause`
#   NODE_LOGS=FOLDER              keeps the logs there, also after a success; a failure of the cluster prints their last lines
#
# The cluster lives in namespaces of its own: network, mounts and processes. It has no way out of its network. When this script ends,
# however it ends, the kernel ends every process and undoes every mount; then only a folder and control groups are left, which this
# script deletes. The next run deletes those of a run that was killed.
#
# Exits with 77 if this machine cannot run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/node/leftovers.sh
. tests/node/leftovers.sh

log() { echo "node: $*" >&2; }
cannot() {
  log "$*"
  exit 77
}

[ "$(uname -s)" = Linux ] || cannot "this needs Linux"
[ "$(id -u)" = 0 ] || cannot "this needs root"
PATH=$PATH:/usr/sbin:/sbin
missing=()
for program in containerd ctr runc ip iptables iptables-save openssl unshare setpriv mount flock; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ "${#missing[@]}" = 0 ] || cannot "these programs are missing: ${missing[*]}; \`make node-tools\` installs them on Debian and Ubuntu"
plugins=
for folder in /usr/lib/cni /opt/cni/bin; do
  if [ -x "$folder/ptp" ] && [ -x "$folder/host-local" ] && [ -x "$folder/loopback" ]; then plugins=$folder; fi
done
[ -n "$plugins" ] || cannot "the CNI plugins ptp, host-local and loopback are missing: \`make node-tools\` installs them on Debian and Ubuntu"
unshare --net --mount --pid --fork --mount-proc true 2>/dev/null ||
  cannot "this process may not create namespaces of network, mounts and processes"
[ -n "$(cgroup_hierarchies)" ] || cannot "no control groups are mounted at /sys/fs/cgroup"
unshare --net iptables --table nat --list >/dev/null 2>&1 || cannot "the kernel has no address translation for iptables"
while IFS= read -r hierarchy; do
  { mkdir "$hierarchy/kube-unions-probe.$$" && rmdir "$hierarchy/kube-unions-probe.$$"; } 2>/dev/null ||
    cannot "this process may not create control groups in $hierarchy"
done < <(cgroup_hierarchies)
[ "${1:-}" != --check ] || exit 0

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
read -ra images <<<"${NODE_IMAGES:-$target/image.tar $target/pause.tar}"
for image in "${images[@]}"; do
  [ -f "$image" ] || {
    log "there is no image \`$image\`: run \`make image-archive node-pause\`"
    exit 1
  }
done
assets=$(tests/controlplane/assets.sh node)
tests/controlplane/assets.sh helm >/dev/null

# One run at a time deletes what is left and begins: a folder without a lock would be deleted.
exec {beginning}<"${TMPDIR:-/tmp}"
flock --exclusive "$beginning"
delete_leftovers
folder=$(mktemp -d "${TMPDIR:-/tmp}/kube-unions-node.XXXXXX")
# Every process of the run inherits this lock.
exec {lock}>"$folder/lock"
flock --exclusive "$lock"
exec {beginning}<&-

namespaces=
end() {
  local status=$? first
  trap '' INT TERM HUP
  if [ -n "$namespaces" ]; then
    # `unshare` ends after its child, process 1 of the cluster, and that one after every other process of the cluster.
    first=$(cat "/proc/$namespaces/task/$namespaces/children" 2>/dev/null || true)
    kill -s KILL "${first:-$namespaces}" 2>/dev/null || true
    wait "$namespaces" 2>/dev/null || true
  fi
  if [ -n "${NODE_LOGS:-}" ]; then
    mkdir -p "$NODE_LOGS"
    cp -R "$folder"/logs/. "$NODE_LOGS" 2>/dev/null || true
  fi
  delete_run "$folder" || status=1
  exit "$status"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

create_cgroups "$(basename "$folder")" node-1 node-2

# If this script is killed, the kernel kills `unshare`, and with it the cluster. `unshare` complains if its child is killed, so the
# cluster gets standard error as descriptor 3.
NODE_FOLDER=$folder NODE_ASSETS=$assets NODE_PLUGINS=$plugins NODE_IMAGES="${images[*]}" \
  setpriv --pdeathsig KILL unshare --net --mount --pid --fork --mount-proc --propagation private --kill-child \
  tests/node/cluster.sh "$@" <&0 3>&2 2>/dev/null &
namespaces=$!
status=0
wait "$namespaces" || status=$?
namespaces=
[ "$status" = 0 ] || exit "$status"
