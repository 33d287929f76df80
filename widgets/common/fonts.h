// SPDX-License-Identifier: GPL-3.0-or-later
// The fonts that travel inside the program, so that text shows on a system without any.
#pragma once

#include <QFont>
#include <QString>

namespace mla::ui
{

/// Registers the bundled fonts once; needs a QGuiApplication. False if the resource is broken.
bool loadBundledFonts();
/// Family of the bundled sans serif font (user interface and figures).
[[nodiscard]] QString sansFamily();
/// Bundled fixed-width font at the application font's size, for ids, tokens, settings.
[[nodiscard]] QFont monospaceFont();

} // namespace mla::ui
