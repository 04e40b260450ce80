# shellcheck shell=bash
#
# What a run of tests/node.sh leaves on the machine: a folder kube-unions-node.*, and control groups of the same name. The script that
# sources this file defines `log`.

# The hierarchies of control groups, one folder a line. With version 1 each controller has a hierarchy, and with version 2 there is one.
# Machines may have both.
cgroup_hierarchies() {
  awk '$3 ~ /^cgroup2?$/ && $2 ~ /^\/sys\/fs\/cgroup(\/|$)/ { print $2 }' /proc/mounts | sort -u
}

# `create_cgroups NAME CHILD...` creates a control group in each hierarchy, and others in it.
create_cgroups() {
  local hierarchy child
  while IFS= read -r hierarchy; do
    pass_on_controllers "$hierarchy"
    mkdir "$hierarchy/$1"
    pass_on_controllers "$hierarchy/$1"
    for child in "${@:2}"; do mkdir "$hierarchy/$1/$child"; done
  done < <(cgroup_hierarchies)
}

# With version 2, a group has the controllers that the group around it passes on.
pass_on_controllers() {
  local controllers controller
  [ -f "$1/cgroup.controllers" ] || return 0
  read -ra controllers <"$1/cgroup.controllers" || true
  for controller in "${controllers[@]}"; do
    echo "+$controller" >"$1/cgroup.subtree_control" 2>/dev/null || true
  done
}

# `delete_cgroups NAME` deletes control groups from the innermost to the outermost. The kernel refuses as long as one has a process.
delete_cgroups() {
  local name=$1 hierarchy deadline=$((SECONDS + 30))
  while IFS= read -r hierarchy; do
    until [ ! -d "$hierarchy/$name" ] || find "$hierarchy/$name" -depth -type d -exec rmdir {} + 2>/dev/null; do
      [ "$SECONDS" -lt "$deadline" ] || {
        log "$hierarchy/$name still has processes: end them, and delete it with rmdir"
        return 1
      }
      read -r -t 0.1 <> <(:) || true
    done
  done < <(cgroup_hierarchies)
}

# `delete_run FOLDER` deletes what is left of a run whose processes have ended.
delete_run() {
  delete_cgroups "$(basename "$1")" && rm -rf --one-file-system "$1"
}

# Deletes what is left of runs that were killed. A run that is under way holds the lock in its folder.
delete_leftovers() {
  local folder lock
  for folder in "${TMPDIR:-/tmp}"/kube-unions-node.??????; do
    [ -f "$folder/lock" ] || continue
    exec {lock}<"$folder/lock"
    if flock --exclusive --nonblock "$lock"; then
      log "deleting $folder, which a run that was killed has left"
      delete_run "$folder" || true
    fi
    exec {lock}<&-
  done
}
