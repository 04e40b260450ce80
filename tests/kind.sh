#!/usr/bin/env bash
# Runs tests/installed.sh on a kind cluster.
#
#   kind.sh           runs everything; deletes the cluster, its kubeconfig and the image at the end, also after a failure
#   kind.sh -n        prints the steps without running them
#
# Needs a Docker engine, kind, kubectl, helm and Rust; the image's binary is built inside Docker. KIND_IMAGE selects a node
# image. After a failure the logs of the cluster are in KIND_LOGS, or in the folder that is printed.
#
# Without Docker, only the steps of this script are checked, with shellcheck and `-n`; `make e2e-node` runs tests/installed.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log() { echo "kind: $*" >&2; }

dry=no
case "${1:-}" in
  "") ;;
  -n | --dry-run) dry=yes ;;
  *)
    log "unknown argument \`$1\`: the only one is \`-n\`"
    exit 2
    ;;
esac

# Prints a step, and runs it unless this is a dry run.
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
    log "nothing was run: ${missing[*]} cannot be found; \`tests/kind.sh -n\` prints the steps"
    exit 1
  fi
  if ! docker info >/dev/null 2>&1; then
    log "nothing was run: no Docker engine answers \`docker info\`; \`tests/kind.sh -n\` prints the steps"
    exit 1
  fi
fi

# Unique names, so that no other cluster, context or image is touched.
run_id=$(date +%s)-$$
cluster=kube-unions-e2e-$run_id
image=kube-unions:e2e-$run_id
folder=$(mktemp -d)
export KUBECONFIG=$folder/kubeconfig

# Collects logs and objects after a failure.
collect_logs() {
  local logs=${KIND_LOGS:-}
  [ -n "$logs" ] || logs=$(mktemp -d -t kube-unions-kind-logs-XXXXXX)
  log "it failed; the logs of the cluster go to $logs"
  mkdir -p "$logs"
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations --output yaml >"$logs/registration.yaml" || true
  kind export logs --name "$cluster" "$logs/kind" >/dev/null || true
}

created=no
end() {
  local status=$?
  trap - EXIT INT TERM
  set +e
  if [ "$dry" = no ]; then
    if [ "$status" -ne 0 ] && [ "$created" = yes ]; then collect_logs; fi
    # Also deletes a cluster whose creation failed.
    kind delete cluster --name "$cluster" --kubeconfig "$KUBECONFIG" >&2
    docker image rm --force "$image" >/dev/null 2>&1
  else
    run kind delete cluster --name "$cluster" --kubeconfig "$KUBECONFIG"
    run docker image rm --force "$image"
    log "these are the steps; none of them was run"
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
run tests/installed.sh "$image"
[ "$dry" = yes ] || log "all checks passed"
