#!/usr/bin/env bash
# Evaluates each alert and each panel of the dashboard by promtool, on the metrics of tests/monitoring/metrics.yaml.
#
# If promtool is not installed, builds it from Go modules into ${XDG_CACHE_HOME:-~/.cache}/kube-unions, outside the checkout: some minutes, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v0.308.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kube-unions/promtool-$version
promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
  promtool=$cache/promtool
  if [ ! -x "$promtool" ]; then
    mkdir -p "$cache"
    (
      cd "$cache"
      rm -f go.mod go.sum
      go mod init promtool
      go get "github.com/prometheus/prometheus/cmd/promtool@$version"
      go build -o promtool.new github.com/prometheus/prometheus/cmd/promtool
      mv promtool.new promtool
    ) >&2 || {
      echo "monitoring: install promtool, for example with the Debian package prometheus, or Go, so that it can be built" >&2
      exit 1
    }
  fi
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp charts/kube-unions/rules/kube-unions.yaml "$folder/alerts.yaml"
cp tests/monitoring/metrics.yaml "$folder"
# Each query of the dashboard as a rule that records `panel`, with the variables of Grafana as a reader would choose them.
jq '{groups: [{name: "panels", rules: [.panels[] | . as $panel | .targets[] | {
  record: "panel",
  expr: .expr | gsub("[$]namespace"; "ku") | gsub("[$]__rate_interval"; "5m"),
  labels: {panel: $panel.title, legend: .legendFormat | split(" ")[0]}
}]}]}' charts/kube-unions/dashboards/kube-unions.json >"$folder/panels.yaml"
"$promtool" check rules "$folder/alerts.yaml" "$folder/panels.yaml"
"$promtool" test rules "$folder/metrics.yaml"
