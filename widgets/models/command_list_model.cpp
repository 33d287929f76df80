// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/command_list_model.h"

#include <algorithm>

#include <QMenu>
#include <QMenuBar>
#include <QRegularExpression>

#include "widgets/common/fuzzy_match.h"

namespace mla::ui
{
namespace
{

/// "&&" is an ampersand, a single "&" marks the mnemonic.
QString withoutMnemonic(const QString& text)
{
    QString name;
    for (qsizetype i = 0; i < text.size(); ++i) {
        if (text[i] == QLatin1Char('&') && ++i == text.size())
            break;
        name += text[i];
    }
    return name;
}

void collect(const QList<QAction*>& actions, const QString& place, std::vector<Command>& found)
{
    for (QAction* action : actions) {
        if (action->isSeparator() || !action->isEnabled() || !action->isVisible())
            continue;
        const QString name = withoutMnemonic(action->text());
        if (const QMenu* menu = action->menu())
            collect(menu->actions(), place.isEmpty() ? name : place + QStringLiteral(" › ") + name,
                    found);
        else
            found.push_back({action, name, place});
    }
}

} // namespace

std::vector<Command> enabledCommands(const QMenuBar& menus)
{
    std::vector<Command> found;
    collect(menus.actions(), {}, found);
    // The run menu repeats an action of the file menu: one entry is enough.
    std::vector<Command> once;
    for (const Command& command : found)
        if (std::none_of(once.begin(), once.end(),
                         [&](const Command& other) { return other.action == command.action; }))
            once.push_back(command);
    return once;
}

void CommandListModel::setCommands(std::vector<Command> commands)
{
    beginResetModel();
    m_commands = std::move(commands);
    rank();
    endResetModel();
}

void CommandListModel::setFilter(const QString& typed)
{
    if (typed == m_filter)
        return;
    beginResetModel();
    m_filter = typed;
    rank();
    endResetModel();
}

void CommandListModel::rank()
{
    std::vector<std::pair<int, std::size_t>> scores;
    for (std::size_t i = 0; i < m_commands.size(); ++i)
        if (const auto score = fuzzyScore(m_filter, m_commands[i].name))
            scores.emplace_back(*score, i);
    std::stable_sort(scores.begin(), scores.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    m_shown.clear();
    for (const auto& [score, index] : scores)
        m_shown.push_back(index);
}

QAction* CommandListModel::actionAt(int row) const
{
    const bool valid = row >= 0 && row < static_cast<int>(m_shown.size());
    return valid ? m_commands[m_shown[std::size_t(row)]].action.data() : nullptr;
}

int CommandListModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

int CommandListModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant CommandListModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid))
        return {};
    const Command& command = m_commands[m_shown[std::size_t(index.row())]];
    const QString shortcut =
        command.action ? command.action->shortcut().toString(QKeySequence::NativeText) : QString();
    if (role == Qt::AccessibleTextRole) // a row is read as one sentence
        return QStringList{command.name, command.place, shortcut}
            .filter(QRegularExpression(QStringLiteral(".")))
            .join(QStringLiteral(", "));
    if (role == Qt::ToolTipRole && command.action)
        return command.action->toolTip();
    if (role == Qt::TextAlignmentRole && index.column() == Shortcut)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    if (role != Qt::DisplayRole)
        return {};
    switch (index.column()) {
    case Name:
        return command.name;
    case Place:
        return command.place;
    default:
        return shortcut;
    }
}

} // namespace mla::ui
