// SPDX-License-Identifier: GPL-3.0-or-later
// The look of the whole application: Fusion style, bundled font, light or dark palette, icons that
// take the text colour.
#pragma once

#include <QApplication>
#include <QIcon>
#include <QPalette>

namespace mla::ui
{

enum class Theme { System, Light, Dark };

[[nodiscard]] QPalette lightPalette();
[[nodiscard]] QPalette darkPalette();
/// Sets style, font and palette. System follows whether the platform is dark. May be called again.
void applyTheme(QApplication& application, Theme theme);

/// Icon `name` from resources/icons, drawn in the palette's text colour (greyed when disabled).
[[nodiscard]] QIcon themedIcon(const QString& name, const QPalette& palette);
/// The application's own icon.
[[nodiscard]] QIcon applicationIcon();

} // namespace mla::ui
