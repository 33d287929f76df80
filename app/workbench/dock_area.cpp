// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/dock_area.h"

#include <QAction>
#include <QApplication>
#include <QDockWidget>
#include <QSettings>

#include <utility>

namespace mla::ui
{

namespace
{
constexpr int layoutVersion = 1;
const auto layoutKey = QStringLiteral("layout/docks");

/// A dock behind another one of its tabs counts as visible, but none of it is seen.
bool isSeen(const QDockWidget& dock)
{
    return !dock.widget()->visibleRegion().isEmpty();
}
} // namespace

DockArea::DockArea(QWidget* parent) : QMainWindow(parent)
{
    setWindowFlags(Qt::Widget);
    setDockNestingEnabled(true);
    setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
}

void DockArea::addPage(const QString& id, const QString& title, QWidget* page, DockPlace place)
{
    auto* dock = new QDockWidget(title, this);
    dock->setObjectName(id);
    dock->setAccessibleName(title);
    dock->setWidget(page);
    m_entries.append({dock, place});
    auto* action = new QAction(title, this);
    if (const int number = int(m_entries.size()); number <= 10)
        action->setShortcut(Qt::CTRL | Qt::Key(Qt::Key_0 + number % 10));
    connect(action, &QAction::triggered, this, [this, dock] { raiseDock(dock); });
    m_pageActions << action;
    dock->toggleViewAction()->setText(tr("%1 panel").arg(title));
    connect(dock->toggleViewAction(), &QAction::triggered, this, &DockArea::pageAsked);
}

QList<QAction*> DockArea::visibilityActions() const
{
    QList<QAction*> actions;
    for (const Entry& entry : m_entries)
        actions << entry.dock->toggleViewAction();
    return actions;
}

void DockArea::raiseDock(QDockWidget* dock)
{
    emit pageAsked();
    dock->show();
    dock->raise();
    dock->widget()->setFocus(Qt::ShortcutFocusReason);
}

void DockArea::raisePage(const QWidget* page)
{
    for (const Entry& entry : m_entries)
        if (entry.dock->widget() == page)
            raiseDock(entry.dock);
}

QStringList DockArea::pageIds() const
{
    QStringList ids;
    for (const Entry& entry : m_entries)
        ids << entry.dock->objectName();
    return ids;
}

QWidget* DockArea::page(const QString& id) const
{
    for (const Entry& entry : m_entries)
        if (entry.dock->objectName() == id)
            return entry.dock->widget();
    return nullptr;
}

QString DockArea::currentPage() const
{
    const QDockWidget* dock = dockWith(QApplication::focusWidget());
    return dock && isSeen(*dock) ? dock->objectName() : frontPage();
}

QString DockArea::frontPage() const
{
    for (const Entry& entry : m_entries)
        if (entry.place == DockPlace::Centre && isSeen(*entry.dock))
            return entry.dock->objectName();
    return {};
}

QDockWidget* DockArea::dockWith(const QWidget* part) const
{
    for (const Entry& entry : m_entries)
        if (entry.dock->isAncestorOf(part))
            return entry.dock;
    return nullptr;
}

QWidget* DockArea::pageWith(const QWidget* part) const
{
    const QDockWidget* dock = dockWith(part);
    return dock ? dock->widget() : nullptr;
}

bool DockArea::isBehind(const QWidget* part) const
{
    const QDockWidget* dock = dockWith(part);
    return dock && !isSeen(*dock);
}

void DockArea::resetLayout()
{
    QDockWidget *side = nullptr, *centre = nullptr;
    for (const Entry& entry : m_entries) {
        removeDockWidget(entry.dock);
        entry.dock->setFloating(false);
    }
    for (const Entry& entry : m_entries) {
        if (entry.place == DockPlace::Bottom) {
            addDockWidget(Qt::BottomDockWidgetArea, entry.dock);
        } else if (entry.place == DockPlace::Side) {
            addDockWidget(Qt::LeftDockWidgetArea, entry.dock);
            side = entry.dock;
        } else if (!centre) {
            addDockWidget(Qt::RightDockWidgetArea, entry.dock);
            centre = entry.dock;
        } else {
            tabifyDockWidget(centre, entry.dock);
        }
        entry.dock->show();
    }
    if (centre)
        centre->raise();
    if (side && centre)
        resizeDocks({side, centre}, {320, 960}, Qt::Horizontal);
    if (centre && m_entries.last().place == DockPlace::Bottom)
        resizeDocks({centre, m_entries.last().dock}, {660, 140}, Qt::Vertical);
}

void DockArea::saveLayout() const
{
    if (m_shown) // else its sizes mean nothing, and what was saved still holds
        QSettings().setValue(layoutKey, saveState(layoutVersion));
}

void DockArea::restoreLayout()
{
    resetLayout();
    m_saved = QSettings().value(layoutKey).toByteArray();
}

/// Widths are restored to the area's real size: at a smaller one the docks would keep what their
/// pages need at least, and grow in that proportion.
void DockArea::showEvent(QShowEvent* event)
{
    QMainWindow::showEvent(event);
    if (std::exchange(m_shown, true))
        return;
    resetLayout();
    restoreState(m_saved, layoutVersion);
}

} // namespace mla::ui
