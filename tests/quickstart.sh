#!/usr/bin/env bash
# Starts a throw-away control plane on loopback, installs kube-unions into it as a process, applies a sample and the presets, and
# prints commands to try. Runs until it is interrupted; then nothing is left.
#
# It needs no container engine. tests/controlplane/assets.sh provides the binaries of the control plane.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

binary=${KUBE_UNIONS_BIN:-target/release/kube-unions}
program=${KUBE_UNIONS_WEBHOOK_BIN:-$binary-webhook}
assets=$(tests/controlplane/assets.sh)
folder=$(mktemp -d "${TMPDIR:-/tmp}/kube-unions-quickstart.XXXXXX")
servers=()

# If this script is killed, the pipe ends, and nothing is left either.
exec {lifeline}> >(
  trap '' INT TERM HUP
  killed=()
  while read -r server; do
    if [ "$server" = ended ]; then exit; fi
    killed+=("$server")
  done
  [ "${#killed[@]}" = 0 ] || kill -KILL "${killed[@]}" 2>/dev/null || true
  # A server may create files until it has ended.
  until rm -rf "$folder" 2>/dev/null; do read -r -t 0.2 <> <(:) || true; done
)

# Ends the servers in the reverse order, so that no server loses its storage.
end() {
  local status=$? index
  trap '' INT TERM HUP
  for ((index = ${#servers[@]} - 1; index >= 0; index--)); do
    kill "${servers[index]}" 2>/dev/null || true
    wait "${servers[index]}" 2>/dev/null || true
  done
  rm -rf "$folder"
  echo ended >&"$lifeline"
  exit "$status"
}
trap end EXIT
trap 'exit 0' INT TERM HUP

say() { echo "quickstart: $*" >&2; }

# Starts a server in a process group of its own, out of reach of Ctrl-C, with its log in the folder.
start() {
  local name=$1
  shift
  say "starting $name"
  set -m
  "$@" >"$folder/$name.log" 2>&1 {lifeline}>&- </dev/null &
  set +m
  servers+=("$!")
  echo "$!" >&"$lifeline"
}

# Runs a command until it succeeds. Fails if a server ends, or after two minutes.
until_succeeds() {
  local what=$1 deadline=$((SECONDS + 120)) server log
  shift
  until "$@" >"$folder/last" 2>&1; do
    for server in "${servers[@]}"; do
      [ "$SECONDS" -lt "$deadline" ] && kill -0 "$server" 2>/dev/null && continue
      say "$what failed; the last lines of each log:"
      for log in "$folder"/*.log "$folder/last"; do
        say "$(basename "$log")"
        tail -n 5 "$log" >&2
      done
      exit 1
    done
    read -r -t 0.2 <> <(:) || true
  done
}

free_port() {
  local port
  while port=$((RANDOM % 10000 + 20000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}

kubeconfig() {
  local user=$1 token=$2
  cat >"$folder/$user.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: quickstart, cluster: {server: "https://127.0.0.1:$api", certificate-authority: $folder/certs/ca.crt}}]
users: [{name: $user, user: {token: $token}}]
contexts: [{name: quickstart, context: {cluster: quickstart, user: $user}}]
current-context: quickstart
EOF
}

kubectl() { "$assets/kubectl" --kubeconfig "$folder/admin.kubeconfig" "$@"; }

etcd=$(free_port) api=$(free_port) webhook=$(free_port)
"$binary" certs --dir "$folder/certs" --host 127.0.0.1 localhost 2>/dev/null
admin=$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')
echo "$admin,admin,admin,system:masters" >"$folder/tokens.csv"
kubeconfig admin "$admin"

start etcd "$assets/etcd" --data-dir "$folder/etcd" --unsafe-no-fsync --log-level warn --listen-peer-urls http://127.0.0.1:0 \
  --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd"
start kube-apiserver "$assets/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd" --bind-address 127.0.0.1 \
  --secure-port "$api" --cert-dir "$folder/kube-apiserver" --tls-cert-file "$folder/certs/tls.crt" \
  --tls-private-key-file "$folder/certs/tls.key" --token-auth-file "$folder/tokens.csv" --authorization-mode RBAC \
  --disable-admission-plugins ServiceAccount --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$folder/certs/tls.crt" --service-account-signing-key-file "$folder/certs/tls.key" \
  --service-cluster-ip-range 10.0.0.0/24 --endpoint-reconciler-type none --shutdown-watch-termination-grace-period 1s
until_succeeds "the start of the control plane" kubectl get --raw /readyz
until_succeeds "the start of the control plane" kubectl get namespace default

# The manifests of the webhook, with a process instead of the Deployment: a Service that leads to loopback, and the token of the
# ServiceAccount.
for file in namespace crd rbac; do kubectl apply -f "manifests/webhook/$file.yaml" >/dev/null; done
kubectl apply -f - >/dev/null <<'EOF'
apiVersion: v1
kind: Service
metadata: {name: kube-unions, namespace: kube-unions}
spec: {type: ExternalName, externalName: localhost}
EOF
kubeconfig kube-unions "$(kubectl -n kube-unions create token kube-unions --duration 24h)"
start kube-unions "$program" serve --kubeconfig "$folder/kube-unions.kubeconfig" --bind "127.0.0.1:$webhook" \
  --ops-bind 127.0.0.1:0 --service "kube-unions/kube-unions:$webhook" --tls-secret kube-unions-tls \
  --owner-cluster-role kube-unions --shutdown-delay 0s --log-format text

"$binary" annotate manifests/samples/rollout/crd.yaml 2>/dev/null | kubectl apply -f - >/dev/null
until_succeeds "the API of UnionDeclarations" kubectl apply -k manifests/presets
kubectl wait --for condition=Established --timeout 60s crd/rollouts.samples.kube-unions.dev >/dev/null
sed 's/^  name: .*/  name: shop/' manifests/samples/rollout/valid-rolling-update.yaml | kubectl apply -f - >/dev/null
kubectl create deployment web --image web >/dev/null
recreate='{"spec": {"strategy": {"type": "Recreate"}}}'
switches() {
  kubectl patch "$1" --type merge --dry-run=server -p "$recreate" 2>&1 | tee "$folder/answer"
  grep -q ' cleared because ' "$folder/answer"
}
for object in rollout/shop deployment/web; do until_succeeds "waiting for the unions of $object" switches "$object"; done

say "ready after $SECONDS seconds"
cat <<EOF

An API server of Kubernetes $(kubectl version -o json | sed -n 's/^ *"gitVersion": "v\(.*\)",/\1/p' | tail -n 1) with kube-unions and the presets runs until you press Ctrl-C. In another terminal:

  export KUBECONFIG=$folder/admin.kubeconfig PATH=$(cd "$(dirname "$binary")" && pwd):$assets:\$PATH

Switch a member of a custom resource:

  kubectl patch rollout shop --type=merge -p '$recreate'

Set a member that another value of \`type\` selects, which is rejected:

  kubectl patch rollout shop --type=merge -p '{"spec": {"strategy": {"canary": {"weight": 5}}}}'

Switch the strategy of a Deployment, which API servers reject without a preset:

  kubectl patch deployment web --type=merge -p '$recreate'

Show the values of \`type\` and their members, and judge every stored object:

  kube-unions explain rollout.spec.strategy
  kube-unions audit -A

EOF

# Waits for the first server that ends, or for a signal.
wait -n "${servers[@]}" || true
say "a server has ended; its last lines:"
tail -n 5 "$folder"/*.log >&2
false
