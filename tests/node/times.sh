#!/usr/bin/env bash
# Prints how long `make node NODE_COMMAND=true` takes: cold, when every program and image must be built from the sources of their
# modules, and warm, when nothing must be built. The sources stay in the caches of Cargo and Go: a first run on a machine also downloads
# them. Each step of a build says on standard error how long it took.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for caches in cold warm; do
  from=$SECONDS
  XDG_CACHE_HOME=$folder/cache GOCACHE=$folder/go CARGO_TARGET_DIR=$folder/target make -s node NODE_COMMAND=true
  echo "node: $caches: $((SECONDS - from)) s"
done
