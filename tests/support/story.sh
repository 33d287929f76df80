#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Pictures of the whole story (tests/gui/tst_story.cpp) in a real window: each theme, scale 1 and 2.
#     tests/support/story.sh BUILD DIR     writes DIR/THEME-SCALE/NN-STOP.png; needs xvfb-run
set -euo pipefail
program=$(realpath "$1/tests/tst_story")
mkdir -p "$2"
shots=$(realpath "$2")
for theme in light dark; do
    for scale in 1 2; do
        mkdir -p "$shots/$theme-$scale"
        echo "story in $theme at scale $scale"
        MLA_STORY_SHOTS="$shots/$theme-$scale" MLA_STORY_THEME=$theme QT_SCALE_FACTOR=$scale \
            QT_QPA_PLATFORM=xcb xvfb-run --auto-servernum \
            --server-args "-screen 0 $((1600 * scale))x$((1100 * scale))x24" "$program" -silent
    done
done
