// SPDX-License-Identifier: GPL-3.0-or-later
// The menu of recently opened studies, kept in the user's settings.
#pragma once

#include <QMenu>
#include <QStringList>

namespace mla::ui
{

class RecentFiles : public QMenu
{
    Q_OBJECT
public:
    static constexpr int most = 10;

    explicit RecentFiles(const QString& title, QWidget* parent = nullptr);

    void add(const QString& path); ///< becomes the first
    void remove(const QString& path);
    [[nodiscard]] QStringList paths() const;

signals:
    void chosen(const QString& path);
    void changed();

private:
    void store(const QStringList& paths);
    void rebuild();
};

} // namespace mla::ui
