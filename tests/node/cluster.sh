#!/usr/bin/env bash
# Process 1 of the cluster of tests/node.sh, in its namespaces: prepares network and mounts, starts the servers, waits until the nodes
# are ready, and runs the command. When it exits, the kernel ends all other processes.
#
# The nodes share the network of the cluster. Each has an address, a containerd and a kubelet of its own, and one kube-proxy writes the
# rules for all.
set -euo pipefail
exec 2>&3 3>&-
started=$EPOCHREALTIME

folder=$NODE_FOLDER assets=$NODE_ASSETS plugins=$NODE_PLUGINS
read -ra images <<<"$NODE_IMAGES"
unset NODE_FOLDER NODE_ASSETS NODE_PLUGINS NODE_IMAGES
nodes=(1 2)
# A node N has the address $network.0.N, and its pods have those in $network.N.0/24.
network=10.200 services=10.201.0.0/24 kubernetes=10.201.0.1
address=$network.0.1
api=$address:6443
# shellcheck source=tests/node/pki.sh
. tests/node/pki.sh
# shellcheck source=tests/node/configuration.sh
. tests/node/configuration.sh

# Process 1 would ignore them.
trap 'exit 130' INT
trap 'exit 143' TERM HUP

log() { echo "node: $*" >&2; }

servers=()
start() {
  local name=$1
  shift
  "$@" >"$folder/logs/$name.log" 2>&1 </dev/null &
  servers+=("$!")
}

# Starts a server that systemd would start again on a node.
start_again_and_again() {
  start "$1" bash -c 'while :; do "$@" || true; read -r -t 0.5 <> <(:) || true; done' bash "${@:2}"
}

# Runs a command until it succeeds. Fails if a server ends, or after two minutes.
until_succeeds() {
  local what=$1 deadline=$((SECONDS + 120)) server file
  shift
  until "$@" >"$folder/logs/last.log" 2>&1; do
    for server in "${servers[@]}"; do
      [ "$SECONDS" -lt "$deadline" ] && kill -0 "$server" 2>/dev/null && continue
      log "$what failed; the last lines of each log:"
      for file in "$folder"/logs/*.log; do
        log "$(basename "$file")"
        tail -n 8 "$file" >&2
      done
      exit 1
    done
    read -r -t 0.1 <> <(:) || true
  done
}

kubectl() { "$assets/kubectl" --kubeconfig "$folder/admin.kubeconfig" "$@"; }

# Everything that would change the machine gets a place in the folder: sockets and state of containerd, runc and CNI, links to the logs
# of pods, and the kernel's settings that the kubelet writes.
mkdir "$folder/logs"
mount -t tmpfs -o mode=0755 tmpfs /run
mount --bind "$folder/logs" /var/log
mkdir "$folder/lib" "$folder/settings"
mount -t tmpfs tmpfs "$folder/lib"
mkdir "$folder/lib/changes" "$folder/lib/work"
mount -t overlay -o "lowerdir=/var/lib,upperdir=$folder/lib/changes,workdir=$folder/lib/work" overlay /var/lib
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes; do
  cat "/proc/sys/$setting" >"$folder/settings/${setting//\//-}"
  mount --bind "$folder/settings/${setting//\//-}" "/proc/sys/$setting"
done

# There is no name server, so no process waits for one.
: >"$folder/resolv.conf"
if [ -f /etc/resolv.conf ]; then mount --bind "$folder/resolv.conf" /etc/resolv.conf; fi

# The addresses of the nodes are on a link that leads nowhere. The default route makes every other address reachable enough for NAT.
ip link set lo up
ip link add node0 type veth peer name nowhere0
for node in "${nodes[@]}"; do ip address add "$network.0.$node/32" dev node0; done
ip link set node0 up
ip link set nowhere0 up
ip route add default dev node0 src "$address"
echo 1 >/proc/sys/net/ipv4/ip_forward

ca
certificate kube-apiserver "/CN=kube-apiserver" \
  "IP:$address,IP:$kubernetes,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
certificate kubelet-client "/O=system:masters/CN=kube-apiserver-kubelet-client"
client admin "/O=system:masters/CN=admin"
for node in "${nodes[@]}"; do
  certificate "kubelet-$node-server" "/O=system:nodes/CN=system:node:node-$node" "IP:$network.0.$node,DNS:node-$node"
  client "kubelet-$node" "/O=system:nodes/CN=system:node:node-$node"
done
client kube-controller-manager "/CN=system:kube-controller-manager"
client kube-scheduler "/CN=system:kube-scheduler"
client kube-proxy "/CN=system:kube-proxy"
openssl ecparam -name prime256v1 -genkey -noout -out "$folder/pki/service-accounts.key"

snapshotter=overlayfs
mkdir "$folder/probe" "$folder/probe/lower" "$folder/probe/changes" "$folder/probe/work" "$folder/probe/merged"
if mount -t overlay -o "lowerdir=$folder/probe/lower,upperdir=$folder/probe/changes,workdir=$folder/probe/work" overlay \
  "$folder/probe/merged" 2>/dev/null; then
  umount "$folder/probe/merged"
else
  snapshotter=native
fi
for node in "${nodes[@]}"; do
  containerd_configuration "$node" "$snapshotter"
  kubelet_configuration "$node"
  start "containerd-$node" containerd --config "$folder/containerd-$node.toml"
done
kube_proxy_configuration
start etcd "$assets/etcd" --data-dir "$folder/etcd" --unsafe-no-fsync --log-level warn --listen-peer-urls http://127.0.0.1:2380 \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379
start kube-apiserver "$assets/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --bind-address "$address" \
  --advertise-address "$address" --secure-port "${api##*:}" --service-cluster-ip-range "$services" \
  --tls-cert-file "$folder/pki/kube-apiserver.crt" --tls-private-key-file "$folder/pki/kube-apiserver.key" \
  --client-ca-file "$folder/pki/ca.crt" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
  --anonymous-auth=false --allow-privileged --enable-bootstrap-token-auth=false \
  --kubelet-client-certificate "$folder/pki/kubelet-client.crt" --kubelet-client-key "$folder/pki/kubelet-client.key" \
  --kubelet-certificate-authority "$folder/pki/ca.crt" --kubelet-preferred-address-types InternalIP \
  --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$folder/pki/service-accounts.key" \
  --service-account-signing-key-file "$folder/pki/service-accounts.key"
for node in "${nodes[@]}"; do
  containerd=/run/node-$node/containerd.sock
  until_succeeds "the start of containerd" ctr --address "$containerd" version
  for image in "${images[@]}"; do
    ctr --address "$containerd" --namespace k8s.io images import --snapshotter "$snapshotter" "$image" >>"$folder/logs/images.log" 2>&1 || {
      log "containerd cannot import $image: $(tail -n 1 "$folder/logs/images.log")"
      exit 1
    }
  done
done
until_succeeds "the start of the control plane" kubectl get --raw /readyz
start kube-controller-manager "$assets/kube-controller-manager" --kubeconfig "$folder/kube-controller-manager.kubeconfig" \
  --leader-elect=false --use-service-account-credentials --root-ca-file "$folder/pki/ca.crt" \
  --service-account-private-key-file "$folder/pki/service-accounts.key" \
  --cluster-signing-cert-file "$folder/pki/ca.crt" --cluster-signing-key-file "$folder/pki/ca.key"
start kube-scheduler "$assets/kube-scheduler" --kubeconfig "$folder/kube-scheduler.kubeconfig" --leader-elect=false
for node in "${nodes[@]}"; do
  start_again_and_again "kubelet-$node" "$assets/kubelet" --config "$folder/kubelet-$node.yaml" \
    --kubeconfig "$folder/kubelet-$node.kubeconfig" --root-dir "$folder/kubelet-$node" --hostname-override "node-$node" \
    --node-ip "$network.0.$node" --node-labels "topology.kubernetes.io/zone=zone-$node"
done
start_again_and_again kube-proxy "$assets/kube-proxy" --config "$folder/kube-proxy.yaml"
for node in "${nodes[@]}"; do
  until_succeeds "the registration of node-$node" kubectl get node "node-$node"
  until_succeeds "node-$node" kubectl wait --for condition=Ready --timeout 5s "node/node-$node"
done
until_succeeds "the default ServiceAccount" kubectl get serviceaccount default
log "${#nodes[@]} nodes are ready after $(awk -v from="$started" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }') s;" \
  "KUBECONFIG=$folder/admin.kubeconfig"

export KUBECONFIG=$folder/admin.kubeconfig PATH=$assets:$PATH
if [ "$#" -gt 0 ]; then
  status=0
  "$@" || status=$?
  exit "$status"
fi
log "press Ctrl-C to end it"
wait -n "${servers[@]}" || true
log "a server has ended; the last lines of the logs:"
tail -n 5 "$folder"/logs/*.log >&2
false
