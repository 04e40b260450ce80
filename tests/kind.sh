#!/usr/bin/env bash
# The same end-to-end tests on a cluster as users have it: a kind cluster, the image, the chart, the webhook registering
# itself. Then it is uninstalled, and nothing of it may be left in the way of a write.
#
#   kind.sh           runs it; the cluster, its kubeconfig and the image are gone afterwards, however it ends
#   kind.sh -n        prints the steps and does none of them
#
# Needs a Docker engine, kind, kubectl, helm and Rust; cargo builds the image's binary inside of Docker. KIND_IMAGE
# names another node image than kind's own. After a failure the logs of the cluster are in KIND_LOGS, or where it says.
#
# Where there is no Docker this script cannot run, and it has only been checked by shellcheck and `-n` there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "kind: $*" >&2; }

dry=no
case "${1:-}" in
  "") ;;
  -n | --dry-run) dry=yes ;;
  *)
    say "unknown argument \`$1\`: the only one is \`-n\`"
    exit 2
    ;;
esac

# Runs a step, or only says what it would be.
run() {
  printf '+' >&2
  printf ' %q' "$@" >&2
  echo >&2
  [ "$dry" = yes ] || "$@"
}

if [ "$dry" = no ]; then
  missing=()
  for program in docker kind kubectl helm cargo; do
    command -v "$program" >/dev/null 2>&1 || missing+=("\`$program\`")
  done
  if [ "${#missing[@]}" -gt 0 ]; then
    say "nothing was run: ${missing[*]} cannot be found; \`tests/kind.sh -n\` prints the steps"
    exit 1
  fi
  if ! docker info >/dev/null 2>&1; then
    say "nothing was run: no Docker engine answers \`docker info\`; \`tests/kind.sh -n\` prints the steps"
    exit 1
  fi
fi

# Names of its own, so that no other cluster, context or image is ever touched.
run_id=$(date +%s)-$$
cluster=kube-unions-e2e-$run_id
image=kube-unions:e2e-$run_id
release=kube-unions
namespace=kube-unions
configurations=mutatingwebhookconfigurations,validatingwebhookconfigurations
folder=$(mktemp -d)
export KUBECONFIG=$folder/kubeconfig

# What helps to understand a failure.
collect_logs() {
  local logs=${KIND_LOGS:-}
  [ -n "$logs" ] || logs=$(mktemp -d -t kube-unions-kind-logs-XXXXXX)
  say "it failed; the logs of the cluster go to $logs"
  mkdir -p "$logs"
  kubectl get "$configurations" --output yaml >"$logs/registration.yaml" || true
  kubectl --namespace "$namespace" describe all >"$logs/describe.txt" || true
  kubectl --namespace "$namespace" get events --sort-by .lastTimestamp >"$logs/events.txt" || true
  kubectl --namespace "$namespace" logs --selector app.kubernetes.io/name=kube-unions --prefix --tail -1 \
    >"$logs/webhook.log" || true
  kind export logs --name "$cluster" "$logs/kind" >/dev/null || true
}

created=no
end() {
  local status=$?
  trap - EXIT INT TERM
  set +e
  if [ "$dry" = no ]; then
    if [ "$status" -ne 0 ] && [ "$created" = yes ]; then collect_logs; fi
    # A cluster that was made by half goes, too.
    kind delete cluster --name "$cluster" --kubeconfig "$KUBECONFIG" >&2
    docker image rm --force "$image" >/dev/null 2>&1
  else
    run kind delete cluster --name "$cluster" --kubeconfig "$KUBECONFIG"
    run docker image rm --force "$image"
    say "these are the steps; none of them was run"
  fi
  rm -rf "$folder"
  exit "$status"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

run make image IMAGE="$image"
run make build

nodes=()
[ -z "${KIND_IMAGE:-}" ] || nodes=(--image "$KIND_IMAGE")
created=yes
run kind create cluster --name "$cluster" --kubeconfig "$KUBECONFIG" --wait 180s "${nodes[@]}"
run kind load docker-image "$image" --name "$cluster"

run helm install "$release" charts/kube-unions --namespace "$namespace" --create-namespace \
  --set image.repository="${image%:*}" --set-string image.tag="${image#*:}" --set image.pullPolicy=Never \
  --wait --timeout 180s
run kubectl --namespace "$namespace" rollout status "deployment/$release" --timeout 180s
run helm test "$release" --namespace "$namespace" --logs --timeout 180s

# A test runs the sample as its author does.
run cargo build --locked --package kube-unions-author --example rollout
# kubectl as it is found here, not of the control plane that the tests have where there is no cluster.
run env -u KUBEBUILDER_ASSETS -u KUBE_UNIONS_E2E KUBE_UNIONS_E2E_KUBECONFIG="$KUBECONFIG" \
  cargo test --locked --all-features --test e2e

run helm uninstall "$release" --namespace "$namespace" --wait --timeout 180s
# No webhook may be left that is asked and cannot answer.
nothing_is_left() {
  local left
  left=$(kubectl get "$configurations" --output name)
  if grep -q kube-unions <<<"$left"; then
    say "uninstalled, and there still is: $left"
    return 1
  fi
}
run nothing_is_left
# The CRDs of the tests are still there: writes of their kinds go through, unions or not.
run kubectl apply --filename manifests/samples/rollout/valid-recreate.yaml
[ "$dry" = yes ] || say "everything held"
