// SPDX-License-Identifier: GPL-3.0-or-later
// What the window shows before a study is open: what to start with, and what was open lately.
#pragma once

#include <QScrollArea>

class QAction;
class QCommandLinkButton;
class QVBoxLayout;

namespace mla::ui
{

class WelcomePage : public QScrollArea
{
    Q_OBJECT
public:
    explicit WelcomePage(QWidget* parent = nullptr);

    /// A large button for `action`, with a line on what it does. The first is the default one.
    /// `icon`: of resources/icons.
    void addEntry(QAction* action, const QString& icon, const QString& description);
    /// Studies, the latest first; those that are not there any more are left out.
    void setRecent(const QStringList& paths);

signals:
    void recentChosen(const QString& path);

protected:
    void changeEvent(QEvent* event) override;

private:
    QCommandLinkButton* addButton(QVBoxLayout* column, const QString& title, const QString& icon,
                                  const QString& description);
    void showIcons();

    QVBoxLayout* m_entries;
    QWidget* m_recentTitle;
    QVBoxLayout* m_recent;
};

} // namespace mla::ui
