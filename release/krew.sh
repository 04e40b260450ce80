#!/usr/bin/env bash
# Writes unions.yaml, the manifest of `kubectl unions` for krew, with the digests of the archives.
#
#   PLATFORMS="linux/amd64 …"     the platforms whose archives must be there; all four by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=release/workspace.sh
. release/workspace.sh

repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
homepage=$(sed -n 's/^homepage = "\(.*\)"$/\1/p' Cargo.toml)
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}"
for platform in "${platforms[@]}"; do
  [ -f "$(archive "$platform")" ] || fail "there is no archive \`$(archive "$platform")\`: run \`make dist DIST_PLATFORM=$platform\`"
done

manifest=$dist/unions.yaml
cat >"$manifest" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: unions
spec:
  version: v$version
  homepage: $homepage
  shortDescription: Check, test and convert the unions of CRDs
  description: |
    Reads the unions that CRDs and UnionDeclarations declare ("set at most one of these fields"). It checks declarations,
    explains and tests unions, compiles them to admission policies, and finds stored objects that violate them.
  caveats: |
    kubectl completes the arguments of the plugin if this link exists:
      ln -s kubectl-unions "\${KREW_ROOT:-\$HOME/.krew}/bin/kubectl_complete-unions"
  platforms:
END
for platform in "${platforms[@]}"; do
  file=$(archive "$platform")
  cat >>"$manifest" <<END
  - selector:
      matchLabels:
        os: ${platform%/*}
        arch: ${platform#*/}
    uri: $repository/releases/download/v$version/$(basename "$file")
    sha256: $(sha256sum "$file" | cut -d ' ' -f 1)
    files:
    - from: "*/kube-unions"
      to: .
    - from: "*/LICENSE"
      to: .
    bin: kube-unions
END
done
log "$manifest has ${#platforms[@]} platforms"
