// SPDX-License-Identifier: GPL-3.0-or-later
// Light, dark, or as the system; kept in the user's settings.
#pragma once

#include <QMenu>

#include "widgets/common/theme.h"

namespace mla::ui
{

class ThemeMenu : public QMenu
{
    Q_OBJECT
public:
    explicit ThemeMenu(const QString& title, QWidget* parent = nullptr);

private:
    void choose(Theme theme);
};

} // namespace mla::ui
