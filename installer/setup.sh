#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what MLA Draft Workbench is built and tested with, as far as it is missing. Asks nothing.
#
#   installer/setup.sh [--cuda] [--python] [--backends] [--tests | --runtime]
#                                      install; prints LibTorch's folder
#   installer/setup.sh --print-root    print that folder; fails if it is not there
#   installer/setup.sh --print-python  print the Python of --backends, else of --python, likewise
#
#   --cuda      also the CUDA libraries, so that the programs can use a GPU
#   --python    also a Python environment with Transformers: chat templates need it, `accept
#               --backend hf` measures in it, and the tests compare with it
#   --backends  that, and vLLM for CPUs on top, for `accept --backend vllm`. On a GPU machine use
#               your own vLLM instead: name its Python in MLA_PYTHON or --python
#   --tests     also the Debian packages that only the tests need
#   --runtime   no Debian packages: for programs that are built already, as in our .deb
#
# Debian packages come through apt-get (sudo when not root). LibTorch and Python packages stand in
# ~/.cache/mla-draft-workbench, shared by all clones; LIBTORCH_ROOT in the environment names another
# LibTorch to use instead, MLA_SETUP_PYTHON another Python to make environments with.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=installer/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=installer/lib/debian.sh
. "$here/lib/debian.sh"
# shellcheck source=installer/lib/environments.sh
. "$here/lib/environments.sh"

print_root() {
    local dir
    if [ -n "${LIBTORCH_ROOT:-}" ]; then
        printf '%s\n' "$LIBTORCH_ROOT"
        return
    fi
    dir=$(libtorch_dir) || exit 1
    complete_environment "$dir" || die "LibTorch is not installed: run installer/setup.sh"
    torch_root "$dir"
}

print_python() {
    local dir
    dir=$(best_python_dir) || exit 1
    complete_environment "$dir" || die "not installed: run installer/setup.sh --python"
    printf '%s\n' "$dir/bin/python"
}

cuda=false python=false backends=false runtime=false
lists=("$here/requirements-debian.txt")
for argument in "$@"; do
    case $argument in
    --cuda) cuda=true ;;
    --python) python=true ;;
    --backends) backends=true ;;
    --tests) lists+=("$here/requirements-debian-tests.txt") ;;
    --runtime) runtime=true ;;
    --print-root) print_root && exit ;;
    --print-python) print_python && exit ;;
    -h | --help) sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" && exit ;;
    *) die "unknown option: $argument" "installer/setup.sh --help lists them" ;;
    esac
done

$runtime || install_debian_packages "${lists[@]}"
[ -n "${LIBTORCH_ROOT:-}" ] || install_libtorch
! $cuda || install_cuda
! $python || install_python
! $backends || install_backends
print_root
