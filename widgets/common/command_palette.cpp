// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/command_palette.h"

#include <QApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QTreeView>
#include <QVBoxLayout>

namespace mla::ui
{
namespace
{
constexpr int roomyWidth = 620;
constexpr int mostRows = 18;
constexpr int margin = 12;
} // namespace

CommandPalette::CommandPalette(QWidget* window)
    : QFrame(window), m_model(new CommandListModel(this)), m_line(new QLineEdit(this)),
      m_list(new QTreeView(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setAccessibleName(tr("Command palette"));
    m_line->setPlaceholderText(tr("Type a few letters of what to do"));
    m_line->setAccessibleName(tr("Command"));
    m_line->setClearButtonEnabled(true);
    m_list->setModel(m_model);
    m_list->setAccessibleName(tr("Commands found"));
    m_list->setRootIsDecorated(false);
    m_list->setUniformRowHeights(true);
    m_list->setAllColumnsShowFocus(true);
    m_list->setHeaderHidden(true);
    m_list->setFocusPolicy(Qt::NoFocus); // the line keeps it: typing always goes on
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setSectionResizeMode(CommandListModel::Name, QHeaderView::Stretch);
    for (const int column : {CommandListModel::Place, CommandListModel::Shortcut})
        m_list->header()->setSectionResizeMode(column, QHeaderView::ResizeToContents);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->addWidget(m_line);
    layout->addWidget(m_list, 1);
    m_line->installEventFilter(this);
    connect(m_line, &QLineEdit::textChanged, this, [this](const QString& typed) {
        m_model->setFilter(typed);
        selectFirst();
        place();
    });
    connect(m_list, &QTreeView::clicked, this, [this](const QModelIndex& at) { run(at.row()); });
    hide();
}

void CommandPalette::open(std::vector<Command> commands)
{
    if (!isVisible())
        m_focusBefore = QApplication::focusWidget();
    m_line->clear();
    m_model->setCommands(std::move(commands));
    selectFirst();
    place();
    show();
    raise();
    m_line->setFocus(Qt::ShortcutFocusReason);
}

void CommandPalette::place()
{
    const QWidget* window = parentWidget();
    const int rows = std::clamp(m_model->rowCount({}), 1, mostRows);
    const int list = rows * std::max(m_list->sizeHintForRow(0), m_line->fontMetrics().height());
    const int around = sizeHint().height() - m_list->sizeHint().height() + 2 * m_list->frameWidth();
    const QSize size = QSize(roomyWidth, list + around)
                           .boundedTo(window->size() - QSize(2 * margin, 2 * margin))
                           .expandedTo({1, 1});
    setGeometry(QRect(QPoint((window->width() - size.width()) / 2, window->height() / 10), size));
}

void CommandPalette::selectFirst()
{
    m_list->setCurrentIndex(m_model->index(0, 0));
}

void CommandPalette::step(int rows)
{
    const int count = m_model->rowCount({});
    if (count == 0)
        return;
    const int row = std::clamp(m_list->currentIndex().row() + rows, 0, count - 1);
    m_list->setCurrentIndex(m_model->index(row, 0));
}

void CommandPalette::run(int row)
{
    const QPointer<QAction> action = m_model->actionAt(row);
    if (!action)
        return;
    dismiss(); // first: the action may open a window or move the focus
    action->trigger();
}

void CommandPalette::dismiss()
{
    hide();
    if (m_focusBefore)
        m_focusBefore->setFocus(Qt::OtherFocusReason);
}

void CommandPalette::showEvent(QShowEvent* event)
{
    QFrame::showEvent(event);
    qApp->installEventFilter(this); // clicks elsewhere, on whatever they fall
}

void CommandPalette::hideEvent(QHideEvent* event)
{
    qApp->removeEventFilter(this);
    QFrame::hideEvent(event);
}

/// Whether the press is one in the window, outside of the palette.
bool CommandPalette::isElsewhere(const QObject* watched) const
{
    const auto* widget = qobject_cast<const QWidget*>(watched);
    return widget && widget->window() == window() && widget != this && !isAncestorOf(widget);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == parentWidget() && event->type() == QEvent::Resize)
        place();
    if (event->type() == QEvent::MouseButtonPress && isElsewhere(watched))
        hide();
    if (watched != m_line)
        return false;
    if (event->type() != QEvent::KeyPress)
        return false;
    const int page =
        std::max(1, m_list->viewport()->height() / std::max(1, m_list->sizeHintForRow(0)));
    switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Up:
    case Qt::Key_Backtab:
        step(-1);
        return true;
    case Qt::Key_Down:
    case Qt::Key_Tab:
        step(1);
        return true;
    case Qt::Key_PageUp:
        step(-page);
        return true;
    case Qt::Key_PageDown:
        step(page);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        run(m_list->currentIndex().row());
        return true;
    case Qt::Key_Escape:
        dismiss();
        return true;
    default:
        return false;
    }
}

} // namespace mla::ui
