# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Debian packages: installs what is missing, and asks nothing.

# Names in the files FILE..., without comments.
listed_packages() { sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | sed '/^$/d'; }

missing_packages() {
    local package
    while read -r package; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            printf '%s\n' "$package"
    done
}

# as_root COMMAND...: through sudo only when needed.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2
}

update_package_lists() {
    say "fetching Debian's package lists"
    apt_get update || die "apt-get update failed: is the network there, and may you use sudo?"
}

# install_debian_packages FILE...: installs the listed packages that are missing.
install_debian_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "not a Debian system: install the counterparts of the packages listed in $* yourself"
        return
    fi
    mapfile -t missing < <(listed_packages "$@" | missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        die "these Debian packages are missing and there is no sudo: ${missing[*]}" \
            "as root: apt-get install ${missing[*]}"
    fi
    say "installing Debian packages: ${missing[*]}"
    # The package lists may be absent (a new machine), or older than the archive.
    apt-get --simulate install "${missing[@]}" >/dev/null 2>&1 || update_package_lists
    if ! apt_get install -y --no-install-recommends "${missing[@]}"; then
        update_package_lists
        apt_get install -y --no-install-recommends "${missing[@]}" ||
            die "apt-get could not install: ${missing[*]}" \
                "the message above says why; installer/setup.sh goes on from here when run again"
    fi
}
