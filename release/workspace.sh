# shellcheck shell=bash
# shellcheck disable=SC2034 # The scripts that source this file use its variables.
#
# Variables and functions of the scripts of a release. They run in the root of the repository.

name=release/$(basename "$0")
log() { echo "$name: $*" >&2; }
fail() {
  log "$*"
  exit 1
}

# The version of the workspace, without `v`.
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml has no version in [workspace.package]"

# The files of the release.
dist=${DIST:-${CARGO_TARGET_DIR:-target}/dist}

# The archive of the program for a platform, for example linux/amd64.
archive() { echo "$dist/${2:-kube-unions}-$version-${1/\//-}.tar.gz"; }

# The time of every file in an archive, so that the same commit gives the same archive.
epoch() { echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"; }

# `pack FOLDER PATH...` writes a tar file with the paths in the folder to standard output. macOS has GNU tar as `gtar`.
pack() {
  local folder=$1 tar
  shift
  tar=$(command -v gtar || command -v tar)
  "$tar" --version 2>/dev/null | grep -F 'GNU tar' >/dev/null || fail "this needs GNU tar: on macOS, install gnu-tar"
  "$tar" --create --directory "$folder" --sort=name --format=ustar --mtime="@$(epoch)" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -- "$@"
}
