#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds, runs the demo, and opens it in the workbench when there is a
# display. Run again, it does only what is left to do.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=installer/lib/common.sh
. "$here/lib/common.sh"

demo=$SOURCE/mla-draft-demo
workbench=$SOURCE/build/bin/mla-workbench

# Opens the demo study beside this script, which ends; a workbench that does not start is reported.
open_workbench() {
    local log=$SOURCE/build/workbench.log process
    "$workbench" "$demo/demo.h5" >"$log" 2>&1 </dev/null &
    process=$!
    sleep 3
    if ! kill -0 "$process" 2>/dev/null && ! wait "$process"; then
        cat "$log" >&2
        die "the workbench did not start (the lines above are from $log)"
    fi
    disown "$process" 2>/dev/null || true
    say "the workbench shows the demo study"
}

"$here/setup.sh" >/dev/null
configure_release
build_release mla-draft mla-workbench

# A complete demo is shown again, an interrupted one continued.
say "demo in $demo"
"$SOURCE/build/bin/mla-draft" demo -o "$demo"

if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    open_workbench
else
    say "no display here; on one, open the study with: $workbench $demo/demo.h5"
fi
