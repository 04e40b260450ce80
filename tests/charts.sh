#!/usr/bin/env bash
# Tries to choose each other member of each union of public charts, and prints what an API server says before and after `chart --fix`.
# Needs the control plane and helm of tests/controlplane/assets.sh, and takes about a minute a chart.
#
#   charts.sh FOLDER [NAME...]   the folder has a folder for each chart; without names, those of the list below
#
# Get a chart and its dependencies with `helm repo add REPOSITORY URL` and `helm pull REPOSITORY/NAME --untar --untardir FOLDER`. A chart
# that the folder does not have is left out.
set -euo pipefail

# A chart, and the values without which it does not render.
charts='
alertmanager
argo-cd
argo-rollouts
argo-workflows
cert-manager
cluster-autoscaler
consul
descheduler
external-dns
external-secrets
fluent-bit
fluentd
harbor
ingress-nginx
jaeger
keda
kube-prometheus-stack
kube-state-metrics
kyverno
loki-distributed
memcached
metallb
metrics-server
minio
mongodb
nats
nginx
opentelemetry-collector --set=mode=deployment --set=image.repository=example.com/collector
opentelemetry-operator
postgresql
prom-label-proxy
prometheus
prometheus-adapter
prometheus-blackbox-exporter
prometheus-elasticsearch-exporter
prometheus-mysql-exporter
prometheus-node-exporter
prometheus-pushgateway
prometheus-redis-exporter
prometheus-snmp-exporter
prometheus-statsd-exporter
promtail
rabbitmq
redis
reloader
sealed-secrets
tempo-distributed
traefik
vault
velero
vertical-pod-autoscaler
'

folder=$(cd "${1:?give the folder of the charts}" && pwd)
shift
given=" $* "
cd "$(dirname "${BASH_SOURCE[0]}")/.."
found=
while read -r name flags; do
  [ -n "$name" ] || continue
  if [ "$given" != "  " ] && [[ "$given" != *" $name "* ]]; then continue; fi
  if [ -f "$folder/$name/Chart.yaml" ]; then found+="$name $flags"$'\n'; else echo "no $folder/$name: left out" >&2; fi
done <<<"$charts"
[ -n "$found" ] || { echo "charts.sh: $folder has none of the charts" >&2; exit 2; }
KUBE_UNIONS_CHARTS=$folder KUBE_UNIONS_CHART_LIST=$found \
  "${CARGO:-cargo}" test --locked --all-features --test e2e -- --ignored --nocapture chart_values::public
