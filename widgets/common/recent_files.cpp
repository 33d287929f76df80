// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace mla::ui
{

namespace
{
const auto settingsKey = QStringLiteral("recentStudies");
}

RecentFiles::RecentFiles(const QString& title, QWidget* parent) : QMenu(title, parent)
{
    setToolTipsVisible(true);
    rebuild();
}

QStringList RecentFiles::paths() const
{
    return QSettings().value(settingsKey).toStringList();
}

void RecentFiles::add(const QString& path)
{
    QStringList all = paths();
    all.removeAll(path);
    all.prepend(path);
    store(all.mid(0, most));
}

void RecentFiles::remove(const QString& path)
{
    QStringList all = paths();
    all.removeAll(path);
    store(all);
}

void RecentFiles::store(const QStringList& paths)
{
    QSettings().setValue(settingsKey, paths);
    rebuild();
    emit changed();
}

void RecentFiles::rebuild()
{
    clear();
    const QStringList all = paths();
    for (int i = 0; i < all.size(); ++i) {
        const QString name = QFileInfo(all[i]).fileName();
        QAction* action = addAction(QStringLiteral("&%1 %2").arg((i + 1) % 10).arg(name));
        action->setToolTip(all[i]);
        connect(action, &QAction::triggered, this, [this, path = all[i]] { emit chosen(path); });
    }
    setEnabled(!all.isEmpty());
    if (all.isEmpty())
        return;
    addSeparator();
    addAction(tr("&Clear list"), this, [this] { store({}); });
}

} // namespace mla::ui
