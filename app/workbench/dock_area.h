// SPDX-License-Identifier: GPL-3.0-or-later
// The pages as docks: their default places, which of them show, and their saved arrangement.
#pragma once

#include <QList>
#include <QMainWindow>
#include <QStringList>

class QAction;
class QDockWidget;

namespace mla::ui
{

/// Place of a page in the default arrangement.
enum class DockPlace { Side, Centre, Bottom };

class DockArea : public QMainWindow
{
    Q_OBJECT
public:
    explicit DockArea(QWidget* parent = nullptr);

    /// `id`: stable, for the saved arrangement. Pages get Ctrl+1, ... Ctrl+9, Ctrl+0.
    void addPage(const QString& id, const QString& title, QWidget* page, DockPlace place);
    void raisePage(const QWidget* page);
    [[nodiscard]] QStringList pageIds() const;
    [[nodiscard]] QWidget* page(const QString& id) const; ///< null for an unknown id
    /// Id of the page that is seen in the centre; "" while the window is hidden.
    [[nodiscard]] QString frontPage() const;

    /// Id of the page that has the focus, else the front one.
    [[nodiscard]] QString currentPage() const;

    [[nodiscard]] QWidget* pageWith(const QWidget* part) const; ///< null if none holds it
    /// Whether a widget belongs to a page of which nothing is seen, behind others of its tabs.
    [[nodiscard]] bool isBehind(const QWidget* part) const;

    /// Per page: an action that brings it to the front.
    [[nodiscard]] const QList<QAction*>& pageActions() const { return m_pageActions; }
    [[nodiscard]] QList<QAction*> visibilityActions() const;

    void resetLayout();
    void saveLayout() const; ///< to the user's settings
    void restoreLayout();    ///< once shown; the default one if none was saved

signals:
    void pageAsked(); ///< the user or the program wants to see one

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Entry {
        QDockWidget* dock;
        DockPlace place;
    };
    void raiseDock(QDockWidget* dock);
    [[nodiscard]] QDockWidget* dockWith(const QWidget* part) const; ///< null if none holds it

    QList<Entry> m_entries;
    QList<QAction*> m_pageActions;
    QByteArray m_saved; ///< to be restored when the area shows first
    bool m_shown = false;
};

} // namespace mla::ui
