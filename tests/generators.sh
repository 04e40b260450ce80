#!/usr/bin/env bash
# Runs each generator of tests/generators in a pinned version, and compares the CRD that it writes with the one in its folder.
#
#   generators.sh [NAME...]             fails if a CRD differs
#   generators.sh --write [NAME...]     writes the CRDs
#
# A generator whose tool is not installed is left out, and named; KUBE_UNIONS_GENERATORS=require makes that a failure. What the generators
# need is installed below GENERATORS_CACHE. tests/it/cli/generators.rs judges the CRDs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/generators"
here=$PWD
cache=${GENERATORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-unions/generators}
mkdir -p "$cache"
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
export CARGO_TARGET_DIR
# The longest time of a generator, with its installation.
limit=${GENERATORS_LIMIT:-900}

controller-gen() {
  (cd "$here/controller-gen" && GOFLAGS=-mod=readonly go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 \
    crd:maxDescLen=0 paths=./api/... output:crd:stdout | sed '1{/^---$/d}')
}

fabric8() {
  rm -rf "$cache/fabric8" && cp -r "$here/fabric8" "$cache/fabric8"
  (cd "$cache/fabric8" && mvn -B -ntp -q process-classes >&2 && cat target/classes/META-INF/fabric8/apps.generators.example.com-v1.yml)
}

kube-rs() {
  cargo run --quiet --locked --manifest-path "$here/kube-rs/Cargo.toml"
}

pydantic() {
  [ -x "$cache/pydantic/bin/python" ] || python3 -m venv "$cache/pydantic"
  "$cache/pydantic/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/pydantic/requirements.txt" >&2
  "$cache/pydantic/bin/python" "$here/pydantic/crd.py"
}

typescript() {
  mkdir -p "$cache/typescript" && cp "$here"/typescript/{.npmrc,package.json,package-lock.json,crd.ts} "$cache/typescript"
  (cd "$cache/typescript" && npm ci --silent --prefer-offline >&2 && node_modules/.bin/tsx crd.ts)
}

declare -A tools=([controller-gen]=go [fabric8]=mvn [kube-rs]=cargo [pydantic]=python3 [typescript]=npm)
declare -A files=([controller-gen]=crd.yaml [fabric8]=crd.yaml [kube-rs]=crd.json [pydantic]=crd.json [typescript]=crd.json)

# For the script itself.
if [ "${1:-}" = --run ]; then
  "$2"
  exit
fi
write=no
[ "${1:-}" != --write ] || { write=yes; shift; }
[ $# -gt 0 ] || set -- controller-gen fabric8 kube-rs pydantic typescript

failed=no
for name; do
  [ -n "${tools[$name]:-}" ] || { echo "generators.sh: unknown generator \`$name\`: they are ${!tools[*]}" >&2; exit 2; }
  if ! command -v "${tools[$name]}" >/dev/null; then
    echo "tests/generators/$name: left out: ${tools[$name]} is not installed" >&2
    [ "${KUBE_UNIONS_GENERATORS:-}" != require ] || failed=yes
    continue
  fi
  started=$SECONDS
  # A process of its own, which can be ended with everything that it starts.
  if ! timeout "$limit" "$here/../generators.sh" --run "$name" >"$cache/$name.crd"; then
    echo "tests/generators/$name: the generator failed, or took more than $limit seconds" >&2
    failed=yes
    continue
  fi
  crd=$name/${files[$name]}
  if [ "$write" = yes ]; then
    cp "$cache/$name.crd" "$crd"
  elif ! diff -u "$crd" "$cache/$name.crd"; then
    echo "tests/generators/$crd: the generator writes another CRD: run tests/generators.sh --write $name" >&2
    failed=yes
    continue
  fi
  echo "tests/generators/$name: as expected, in $((SECONDS - started)) seconds"
done
[ "$failed" = no ]
