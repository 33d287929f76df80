# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Shared by the scripts of this folder: messages, paths, the number of build jobs.

INSTALLER=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SOURCE=$(dirname "$INSTALLER")
# shellcheck disable=SC2034  # used by the files sourced after this one
CACHE=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/mla-draft-workbench

# Messages go to stderr; stdout carries results only.
say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '       %s\n' "$@" >&2
    exit 1
}

# Build jobs: one a core, and no more than memory holds (a source file with LibTorch takes 1.5 GB).
build_jobs() {
    local cores megabytes jobs
    cores=$(nproc)
    megabytes=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    jobs=$((megabytes / 1500))
    [ "$jobs" -lt "$cores" ] || jobs=$cores
    [ "$jobs" -ge 1 ] || jobs=1
    printf '%s\n' "$jobs"
}

# configure_release: the release preset in build/, with the LibTorch of setup.sh unless
# LIBTORCH_ROOT names another.
configure_release() {
    local root
    root=${LIBTORCH_ROOT:-$("$INSTALLER/setup.sh" --print-root)}
    say "configuring (LibTorch in $root)"
    (cd "$SOURCE" && cmake --preset release -DLIBTORCH_ROOT="$root" >&2)
}

# build_release TARGET...
build_release() {
    local jobs
    jobs=$(build_jobs)
    say "building with $jobs jobs"
    (cd "$SOURCE" && cmake --build --preset release -j "$jobs" --target "$@" >&2)
}
