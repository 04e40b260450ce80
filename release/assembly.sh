# shellcheck shell=bash
# shellcheck disable=SC2154 # The scripts that source this file set `crane` and `folder`, and source workspace.sh and registry.sh.
#
# Assembles images without a container engine, from the contents of `make image-contents` and the configuration in the Dockerfile.

# The configuration in the last stage of the Dockerfile, as arguments of `crane mutate`, one a line.
configuration() {
  local keyword rest pair
  sed -e ':next' -e '/\\$/{N;s/\\\n *//;b next' -e '}' Dockerfile | sed '1,/^FROM scratch$/d' | while read -r keyword rest; do
    case "$keyword" in
      ENV) for pair in $rest; do echo "--env=$pair"; done ;;
      USER) echo "--user=$rest" ;;
      EXPOSE) for pair in $rest; do echo "--exposed-ports=$pair/tcp"; done ;;
      ENTRYPOINT)
        rest=${rest#'["'}
        echo "--entrypoint=${rest%'"]'}"
        ;;
      LABEL) xargs -n 1 <<<"$rest" | sed 's/^/--label=/' ;;
      COPY | '' | '#') ;;
      *) fail "the Dockerfile has the instruction \`$keyword\` after \`FROM scratch\`, which this script does not know" ;;
    esac
  done
  echo "--label=org.opencontainers.image.version=$version"
  echo "--label=org.opencontainers.image.revision=$(git rev-parse HEAD)"
  echo "--label=org.opencontainers.image.source=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)"
}

# `assemble PLATFORM CONTENTS REPOSITORY ARGUMENT...` pushes an image by its digest, and prints its name with the digest. The
# arguments are those of `crane mutate`. crane changes the configuration of an image only in a registry, so `start_registry` goes
# before.
assemble() {
  local platform=$1 contents=$2 repository=$3 scratch=$registry/scratch:${1/\//-} paths=("$2"/*)
  shift 3
  pack "$contents" "${paths[@]##*/}" >"$folder/layer.tar"
  "$crane" append --oci-empty-base --new_layer "$folder/layer.tar" --new_tag "$scratch" >/dev/null 2>"$folder/log" ||
    fail "the image for $platform cannot be assembled: $(cat "$folder/log")"
  "$crane" mutate "$scratch" --set-platform "$platform" "$@" --repo "$repository" 2>"$folder/log" ||
    fail "the image for $platform cannot be pushed to \`$repository\`: $(cat "$folder/log")"
}
