#!/usr/bin/env bash
# Provides the control plane that the end-to-end tests run on: kube-apiserver, etcd and kubectl. Also builds helm and kustomize.
#
#   assets.sh                       prints the folder of the three binaries on stdout, and progress on stderr
#   assets.sh helm                  prints the folder of helm, and builds helm alone
#   assets.sh helm4                 prints the folder of Helm 4, which has this name, and builds it from the go.mod of helm4
#   assets.sh kustomize             prints the folder of kustomize, and builds kustomize alone
#   assets.sh controller-manager    also builds kube-controller-manager; optional if KUBEBUILDER_ASSETS is set
#   assets.sh node                  also builds the other parts of a node: kube-controller-manager, kube-scheduler, kubelet, kube-proxy
#   K8S_VERSION=1.33 assets.sh      prints a folder with kube-apiserver and kubectl of that version, from the go.mod of the folder
#                                   1.33, and with etcd of the usual version
#   K8S_VERSION=1.33 assets.sh controller-manager
#                                   also builds kube-controller-manager of that version
#   K8S_VERSION=1.33 assets.sh find fails if this kube-apiserver has not been built
#
# The first source that has the binaries is used:
#   1. KUBEBUILDER_ASSETS, as other projects use it
#   2. the cache, ${XDG_CACHE_HOME:-~/.cache}/kube-unions/<kubernetes version>
#   3. the prebuilt binaries of setup-envtest (KUBE_UNIONS_ENVTEST=skip skips this step)
#   4. a build from Go modules, with the versions of go.mod in this folder. Takes tens of minutes on two cores, once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
more=${1:-}
case "$more" in
  "" | helm | helm4 | kustomize | controller-manager | node | find) ;;
  *)
    echo "assets.sh: unknown argument \`$more\`:" \
      "use \`helm\`, \`helm4\`, \`kustomize\`, \`controller-manager\`, \`node\` or \`find\`" >&2
    exit 2
    ;;
esac

log() { echo "assets: $*" >&2; }

# The folder of the go.mod to build from.
modules=$here

version_of() {
  awk -v module="$1" '$1 == "require" { sub(/^require /, "") } $1 == module && $2 ~ /^v/ { print $2; exit }' \
    "$modules/go.mod"
}

kubernetes=$(version_of k8s.io/kubernetes)
minor=${kubernetes#v}
minor=${minor%.*}
[ "${K8S_VERSION:=}" != "$minor" ] || K8S_VERSION=
if [ -n "$K8S_VERSION" ] && ! [[ "$K8S_VERSION" =~ ^[0-9]+\.[0-9]+$ && -f "$here/$K8S_VERSION/go.mod" ]]; then
  versions=$(cd "$here" && { dirname [0-9]*/go.mod; echo "$minor"; } | sort -V | paste -sd ' ')
  echo "assets.sh: K8S_VERSION is \`$K8S_VERSION\`: use one of $versions" >&2
  exit 2
fi
setup_envtest=v0.25.1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/kube-unions/$kubernetes"
core=(kube-apiserver etcd kubectl)
node=(kube-controller-manager kube-scheduler kubelet kube-proxy)

has_all() {
  local folder=$1 binary
  for binary in "${core[@]}"; do [ -x "$folder/$binary" ] || return 1; done
}

need_go() {
  command -v go >/dev/null 2>&1 || {
    log "no Go tool chain found: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with ${core[*]}"
    exit 1
  }
}

# Builds one package of go.mod into the cache. The file is renamed only when it is complete, so an interrupted build is
# repeated.
build() {
  local name=$1 package=$2 flags=$3 started=$SECONDS
  [ -x "$cache/$name" ] && [ "${4:-}" != again ] && return 0
  need_go
  log "building $name $kubernetes from Go modules (the first time takes minutes)"
  (cd "$modules" && GOFLAGS="-mod=readonly ${GOFLAGS:-}" CGO_ENABLED=0 \
    go build -trimpath -ldflags "-s -w $flags" -o "$cache/.$name.$$" "$package") >&2
  mv "$cache/.$name.$$" "$cache/$name"
  log "$name built in $((SECONDS - started)) s"
}

# Builds a tool. The folder's name has the version of Kubernetes, but not the tool's. The file `.NAME.built` has the package and
# the flags, with the version, and a tool that was built otherwise is built again.
build_tool() {
  local built=$cache/.$1.built recipe="$2 $3" again=again
  [ "$(cat "$built" 2>/dev/null)" = "$recipe" ] && again=''
  build "$1" "$2" "$3" "$again"
  echo "$recipe" >"$built"
}

# Without a cluster, helm renders and lints for the Kubernetes version that is linked in, as in Helm's releases: the one of
# client-go. Helm 4 reads it from its build information.
build_helm() {
  local minor variable stamp
  minor=$(version_of k8s.io/client-go | cut -d. -f2)
  stamp="-X helm.sh/helm/v3/internal/version.version=$(version_of helm.sh/helm/v3)"
  for variable in pkg/chartutil.k8sVersion pkg/lint/rules.k8sVersion; do
    stamp+=" -X helm.sh/helm/v3/${variable}Major=1 -X helm.sh/helm/v3/${variable}Minor=$minor"
  done
  build_tool helm helm.sh/helm/v3/cmd/helm "$stamp"
}

build_helm4() {
  modules=$here/helm4
  build_tool helm4 helm.sh/helm/v4/cmd/helm \
    "-X helm.sh/helm/v4/internal/version.version=$(version_of helm.sh/helm/v4)"
}

build_kustomize() {
  build_tool kustomize sigs.k8s.io/kustomize/kustomize/v5 \
    "-X sigs.k8s.io/kustomize/api/provenance.version=kustomize/$(version_of sigs.k8s.io/kustomize/kustomize/v5)"
}

# Downloads prebuilt binaries. Gives up quickly, because the build always works.
download() {
  [ "${KUBE_UNIONS_ENVTEST:-}" != skip ] && command -v go >/dev/null 2>&1 || return 1
  local found
  log "looking for prebuilt binaries of Kubernetes $minor with setup-envtest"
  found=$(GOBIN="$cache/.tools" go install "sigs.k8s.io/controller-runtime/tools/setup-envtest@$setup_envtest" >&2 &&
    timeout 300 "$cache/.tools/setup-envtest" use "$minor.x" --bin-dir "$cache/.envtest" -p path 2>/dev/null) || return 1
  has_all "$found" || return 1
  for binary in "${core[@]}"; do ln -sf "$found/$binary" "$cache/$binary"; done
}

# Builds a binary of Kubernetes with its version stamped in.
build_kubernetes() {
  local stamp
  stamp="-X k8s.io/component-base/version.gitVersion=$kubernetes
    -X k8s.io/component-base/version.gitMajor=1
    -X k8s.io/component-base/version.gitMinor=$(echo "$kubernetes" | cut -d. -f2)
    -X k8s.io/component-base/version.gitTreeState=clean"
  build "$1" "k8s.io/kubernetes/cmd/$1" "$(echo "$stamp" | tr '\n' ' ')"
}

build_core() {
  build etcd go.etcd.io/etcd/server/v3 ""
  build_kubernetes kubectl
  build_kubernetes kube-apiserver
}

# Tools need no control plane, and are the same for every version of Kubernetes.
case "$more" in
  helm | helm4 | kustomize)
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$more" ]; then
      cache=$KUBEBUILDER_ASSETS
    else
      mkdir -p "$cache"
      "build_$more"
    fi
    echo "$cache"
    exit
    ;;
esac

if [ -n "$K8S_VERSION" ]; then
  if [ "$more" = node ]; then
    log "a node has the usual version, $minor: unset K8S_VERSION"
    exit 2
  fi
  usual=$(K8S_VERSION='' "$here/assets.sh")
  modules=$here/$K8S_VERSION
  kubernetes=$(version_of k8s.io/kubernetes)
  cache="${XDG_CACHE_HOME:-$HOME/.cache}/kube-unions/$kubernetes"
  if [ "$more" = find ] && [ ! -x "$cache/kube-apiserver" ]; then
    log "no kube-apiserver $kubernetes has been built"
    exit 1
  fi
  mkdir -p "$cache"
  ln -sf "$usual/etcd" "$cache/etcd"
  build_kubernetes kubectl
  build_kubernetes kube-apiserver
  [ "$more" != controller-manager ] || build_kubernetes kube-controller-manager
  echo "$cache"
  exit
fi

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  has_all "$KUBEBUILDER_ASSETS" || {
    log "KUBEBUILDER_ASSETS is set to \`$KUBEBUILDER_ASSETS\`, which does not have ${core[*]}: correct or unset it"
    exit 1
  }
  cache=$KUBEBUILDER_ASSETS
else
  mkdir -p "$cache"
  has_all "$cache" || download || {
    log "no prebuilt binaries: building from source"
    build_core
  }
fi

if [ "$more" = controller-manager ] && [ ! -x "$cache/kube-controller-manager" ]; then
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    log "KUBEBUILDER_ASSETS has no kube-controller-manager: the pages that install the chart are not followed"
  else
    build_kubernetes kube-controller-manager
  fi
fi
if [ "$more" = node ]; then
  for binary in "${node[@]}"; do
    [ -x "$cache/$binary" ] && continue
    if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
      log "KUBEBUILDER_ASSETS is set to \`$KUBEBUILDER_ASSETS\`, which does not have $binary: add it or unset KUBEBUILDER_ASSETS"
      exit 1
    fi
    build_kubernetes "$binary"
  done
fi
echo "$cache"
