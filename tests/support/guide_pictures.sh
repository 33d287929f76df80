#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Takes the pictures of the user guide anew: the pages of the story (tests/gui/tst_story.cpp) that
# resources/help names.
#     tests/support/guide_pictures.sh BUILD                                  needs xvfb-run
set -euo pipefail
guide=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../resources/help" && pwd)
taken=$(mktemp -d)
story=/tmp/story # pictures show it: no folder of this machine
mkdir "$story"
trap 'rm -r "$taken" "$story"' EXIT
MLA_STORY_PAGES=$taken MLA_STORY_FOLDER=$story QT_QPA_PLATFORM=xcb xvfb-run --auto-servernum \
    --server-args "-screen 0 1600x1100x24" "$1/tests/tst_story" -silent
mkdir -p "$guide/pictures"
rm -f "$guide"/pictures/*.png
grep -oh 'pictures/[^)]*' "$guide"/*.md | sort -u | while read -r picture; do
    cp "$taken/${picture#pictures/}" "$guide/$picture"
done
