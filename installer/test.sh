#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds everything, runs every test. Arguments go to ctest
# (for example: installer/test.sh -L unit). Ends with ctest's summary and exit status.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=installer/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=installer/lib/environments.sh
. "$here/lib/environments.sh"
# shellcheck source=installer/lib/smollm2.sh
. "$here/lib/smollm2.sh"

"$here/setup.sh" --tests >/dev/null
configure_release
build_release all

# Tests that need these say "skipped" without them.
"$here/setup.sh" --backends >/dev/null || say "without vLLM: tests that run it will be skipped"
if "$here/setup.sh" --python >/dev/null; then
    MLA_PYTHON=$("$here/setup.sh" --print-python)
    export MLA_PYTHON
    if (install_smollm2 "$MLA_PYTHON"); then
        MLA_SMOLLM2_DIR=$(smollm2_dir)
        export MLA_SMOLLM2_DIR
    else
        say "without SmolLM2: tests labelled 'real' will be skipped"
    fi
else
    say "without Transformers: tests that compare with it will be skipped"
fi

export QT_QPA_PLATFORM=offscreen HF_HUB_OFFLINE=1
cd "$SOURCE"
exec ctest --preset release -j "$(build_jobs)" "$@"
