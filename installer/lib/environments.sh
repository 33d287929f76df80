# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Private Python environments in the user's cache, one for each content of its requirements files,
# so that clones share them. An environment counts only once its `complete` file is written, the last
# step; anything less is removed and made again.

# The first of $MLA_SETUP_PYTHON, python3, /usr/bin/python3 that can make an environment.
find_python() {
    local candidate
    for candidate in ${MLA_SETUP_PYTHON:+"$MLA_SETUP_PYTHON"} python3 /usr/bin/python3; do
        if "$candidate" -c 'import sys, ensurepip, venv
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "no Python 3.11 to 3.14 with the venv module found" \
        "install one (Debian: python3-venv), or name it in MLA_SETUP_PYTHON"
}

# environment_dir NAME FILE...: where the environment made from the files is, or will be.
environment_dir() {
    local name=$1 python version hash
    shift
    python=$(find_python) || exit 1
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    hash=$( (printf '%s\n' "$version" && cat "$@") | sha256sum | cut -c1-16)
    printf '%s/%s-%s\n' "$CACHE" "$name" "$hash"
}

# complete_environment DIR: is it whole, and is its Python still there?
complete_environment() { [ -f "$1/complete" ] && "$1/bin/python" -c '' 2>/dev/null; }

# pip_install DIR ARGUMENT...
pip_install() {
    local dir=$1
    shift
    "$dir/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        --progress-bar off "$@" >&2 ||
        die "pip could not install into $dir" \
            "the message above says why (no network?); run the command again to go on"
}

# with_lock DIR COMMAND...: two scripts at once make an environment only once.
with_lock() {
    local lock=$1.lock
    shift
    mkdir -p "$CACHE"
    (
        flock 9
        "$@"
    ) 9>"$lock"
}

# need_space MEGABYTES WHAT: ends with clear words, before anything is half written.
need_space() {
    local megabytes
    mkdir -p "$CACHE"
    megabytes=$(df --output=avail -m "$CACHE" | tail -n 1 | tr -d ' ')
    [ "$megabytes" -ge "$1" ] ||
        die "$2 needs $1 MB of free disk space, and $CACHE has $megabytes MB" \
            "make room, or name a folder with more in XDG_CACHE_HOME"
}

# new_environment DIR: an empty one, in place of anything half made.
new_environment() {
    rm -rf "$1"
    "$(find_python)" -m venv "$1" >&2 || die "could not make a Python environment in $1"
}

# make_environment DIR PIP_ARGUMENT...: nothing to do when DIR is complete.
make_environment() {
    local dir=$1
    shift
    ! complete_environment "$dir" || return 0
    new_environment "$dir"
    pip_install "$dir" "$@"
    touch "$dir/complete"
}

libtorch_dir() { environment_dir libtorch "$INSTALLER/requirements-libtorch.txt"; }
python_dir() { environment_dir python "$INSTALLER/requirements-python.txt"; }
backends_dir() {
    environment_dir backends "$INSTALLER/requirements-python.txt" \
        "$INSTALLER/requirements-backends.txt"
}

# complete_backends DIR BASE: vLLM's environment sees the packages of the one it stands on.
complete_backends() { complete_environment "$1" && complete_environment "$2"; }

site_packages() {
    "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

# torch_root DIR: the folder with LibTorch's include/ and lib/.
torch_root() {
    local root
    for root in "$1"/lib/python3*/site-packages/torch; do
        printf '%s\n' "$root"
    done
}

install_libtorch() {
    local dir
    [ "$(uname -m)" = x86_64 ] ||
        die "no LibTorch is known here for $(uname -m): set LIBTORCH_ROOT to one (2.4 or newer)"
    dir=$(libtorch_dir) || exit 1
    complete_environment "$dir" ||
        say "installing LibTorch (0.6 GB to download, 1.2 GB on disk) into $dir"
    with_lock "$dir" make_environment "$dir" --no-deps --require-hashes \
        -r "$INSTALLER/requirements-libtorch.txt"
}

# The CUDA libraries go beside LibTorch: the programs find them at start-up, without a new build.
install_cuda() {
    local dir stamp
    dir=$(libtorch_dir) || exit 1
    stamp=$dir/cuda-$(sha256sum "$INSTALLER/requirements-cuda.txt" | cut -c1-16)
    [ ! -f "$stamp" ] || return 0
    say "adding the CUDA libraries (2.5 GB to download) to $dir"
    with_lock "$dir" pip_install "$dir" --no-deps -r "$INSTALLER/requirements-cuda.txt"
    touch "$stamp"
}

install_python() {
    local dir
    dir=$(python_dir) || exit 1
    if ! complete_environment "$dir"; then
        need_space 8000 Transformers
        say "installing Transformers and its kind (5 GB on disk, some minutes) into $dir"
    fi
    with_lock "$dir" make_environment "$dir" -r "$INSTALLER/requirements-python.txt"
    note_python
}

# vLLM goes into an environment of its own that stands on Transformers': it wants an older numpy,
# and failing to install it spoils nothing.
install_backends() {
    local dir base
    install_python
    base=$(python_dir) && dir=$(backends_dir) || exit 1
    if ! complete_environment "$dir"; then
        need_space 3000 vLLM
        say "installing vLLM for CPUs (1.4 GB on disk, a few minutes) into $dir"
    fi
    with_lock "$dir" make_backends "$dir" "$base"
    note_python
}

make_backends() {
    local dir=$1 base=$2
    ! complete_environment "$dir" || return 0
    new_environment "$dir"
    site_packages "$base" >"$(site_packages "$dir")/transformers-environment.pth"
    pip_install "$dir" --no-deps -r "$INSTALLER/requirements-backends.txt"
    VLLM_LOGGING_LEVEL=ERROR "$dir/bin/python" -c 'from vllm import LLM' >&2 ||
        die "vLLM is installed in $dir and cannot be loaded" "the message above says why"
    touch "$dir/complete"
}

# best_python_dir: the environment with vLLM if it is there, else the one with Transformers alone.
best_python_dir() {
    local dir base
    base=$(python_dir) && dir=$(backends_dir) || exit 1
    complete_backends "$dir" "$base" || dir=$base
    printf '%s\n' "$dir"
}

# note_python: names the best environment for the programs, which do not know the hash.
note_python() {
    local note=$CACHE/python-environment
    best_python_dir >"$note.$$" && mv "$note.$$" "$note"
}
