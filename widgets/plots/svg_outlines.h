// SPDX-License-Identifier: GPL-3.0-or-later
// SVG that looks the same in every program: no font has to be found where it is shown.
#pragma once

#include <QByteArray>

namespace mla::ui
{

/// The drawing with each <text> as a <path> of its glyphs, from the fonts that this program has;
/// the words stay in the path's aria-label. Browsers take embedded fonts and rsvg-convert does not,
/// so outlines are what both draw alike. Expects the attributes that QSvgGenerator writes.
[[nodiscard]] QByteArray withTextAsOutlines(const QByteArray& svg);

} // namespace mla::ui
