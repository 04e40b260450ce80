# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster.sh sets the variables.
#
# The configuration files of the nodes. cluster.sh sources this file.

# `containerd_configuration NODE SNAPSHOTTER`
containerd_configuration() {
  cat >"$folder/containerd-$1.toml" <<EOF
version = 2
root = "$folder/containerd-$1"
state = "/run/node-$1"
# The plugin \`opt\` would create a folder outside.
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/node-$1/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/kube-unions-pause:dev"
  # Otherwise containers fail to start without CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  # Would load a profile into the kernel.
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$(command -v runc)"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$plugins"
    conf_dir = "$folder/cni-$1"
EOF
  mkdir "$folder/cni-$1"
  # The plugin \`ptp\` routes every packet through the host, so that answers to the address of a Service pass its NAT again.
  cat >"$folder/cni-$1/10-node.conflist" <<EOF
{
  "cniVersion": "0.4.0",
  "name": "node",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": "$folder/addresses-$1",
      "ranges": [[{"subnet": "$network.$1.0/24"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
EOF
}

# `kubelet_configuration NODE`
kubelet_configuration() {
  cat >"$folder/kubelet-$1.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/node-$1/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $folder/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $folder/pki/kubelet-$1-server.crt
tlsPrivateKeyFile: $folder/pki/kubelet-$1-server.key
address: $network.0.$1
healthzPort: 0
resolvConf: $folder/resolv.conf
podLogsDir: $folder/logs/pods-$1
volumePluginDir: $folder/volume-plugins
cgroupDriver: cgroupfs
cgroupRoot: /$(basename "$folder")/node-$1
failCgroupV1: false
failSwapOn: false
# The nodes share disk and memory with this machine, which may be nearly full.
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
EOF
}

# Limits of connection tracking belong to the machine, so kube-proxy leaves them alone.
kube_proxy_configuration() {
  cat >"$folder/kube-proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $folder/kube-proxy.kubeconfig}
hostnameOverride: node-1
clusterCIDR: $network.0.0/16
iptables: {minSyncPeriod: 0s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
EOF
}
