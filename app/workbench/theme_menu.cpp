// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/theme_menu.h"

#include <QActionGroup>
#include <QSettings>

namespace mla::ui
{

namespace
{
const auto themeKey = QStringLiteral("theme");
}

ThemeMenu::ThemeMenu(const QString& title, QWidget* parent) : QMenu(title, parent)
{
    const auto stored = static_cast<Theme>(QSettings().value(themeKey, int(Theme::System)).toInt());
    auto* group = new QActionGroup(this);
    const std::pair<QString, Theme> choices[] = {{tr("As the &system"), Theme::System},
                                                 {tr("&Light"), Theme::Light},
                                                 {tr("&Dark"), Theme::Dark}};
    for (const auto& [name, theme] : choices) {
        QAction* action = addAction(name, this, [this, theme = theme] { choose(theme); });
        action->setCheckable(true);
        action->setChecked(theme == stored);
        group->addAction(action);
    }
    choose(stored);
}

void ThemeMenu::choose(Theme theme)
{
    QSettings().setValue(themeKey, int(theme));
    if (auto* application = qobject_cast<QApplication*>(QCoreApplication::instance()))
        applyTheme(*application, theme);
}

} // namespace mla::ui
