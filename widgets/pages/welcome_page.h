// SPDX-License-Identifier: GPL-3.0-or-later
// What the window shows before a study is open: what to start with, and what was open lately.
#pragma once

#include <QScrollArea>

class QAction;
class QVBoxLayout;

namespace mla::ui
{

class WelcomePage : public QScrollArea
{
    Q_OBJECT
public:
    explicit WelcomePage(QWidget* parent = nullptr);

    /// A large button for `action`, with a line on what it does. The first is the default one.
    void addEntry(QAction* action, const QString& description);
    /// Studies, the latest first; those that are not there any more are left out.
    void setRecent(const QStringList& paths);

signals:
    void recentChosen(const QString& path);

private:
    QVBoxLayout* m_entries;
    QWidget* m_recentTitle;
    QVBoxLayout* m_recent;
};

} // namespace mla::ui
