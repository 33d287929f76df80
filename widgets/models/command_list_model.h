// SPDX-License-Identifier: GPL-3.0-or-later
// What can be done now, found by typing: the enabled actions of menus with their menu and shortcut,
// the best match first.
#pragma once

#include <vector>

#include <QAbstractTableModel>
#include <QAction>
#include <QPointer>

class QMenuBar;

namespace mla::ui
{

struct Command {
    QPointer<QAction> action;
    QString name;  ///< without the mark of its mnemonic
    QString place; ///< the menus on the way to it: "View › Theme"
};
/// Of every menu and its submenus; what is disabled, hidden or below a disabled menu is left out.
[[nodiscard]] std::vector<Command> enabledCommands(const QMenuBar& menus);

class CommandListModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Name, Place, Shortcut, ColumnCount };

    explicit CommandListModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    void setCommands(std::vector<Command> commands);
    void setFilter(const QString& typed); ///< "" = all, in the order of the menus
    /// Null if there is no such row, or the action has gone since.
    [[nodiscard]] QAction* actionAt(int row) const;

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

private:
    void rank();

    std::vector<Command> m_commands;
    std::vector<std::size_t> m_shown; ///< into m_commands, best first
    QString m_filter;
};

} // namespace mla::ui
