// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/acceptance_table_model.h"

#include <array>

#include <QFont>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

namespace mla::ui
{

namespace
{

using Model = AcceptanceTableModel;

QVariant optionalValue(const std::optional<double>& value)
{
    return value ? QVariant(*value) : QVariant();
}

QVariant valueOf(const AcceptanceRow& row, int column)
{
    const AcceptanceMetrics& metrics = row.metrics;
    switch (column) {
    case Model::Converter:
        return row.converter;
    case Model::Variant:
        return row.variant;
    case Model::Task:
        return row.task;
    case Model::Backend:
        return row.backend;
    case Model::Rate:
        return 100 * metrics.acceptanceRate;
    case Model::Interval:
        return 100 * (metrics.rateHigh - metrics.rateLow);
    case Model::Length:
        return metrics.meanAcceptanceLength;
    case Model::Delta:
        return optionalValue(row.deltaPp);
    case Model::K:
        return row.k;
    case Model::Method:
        return row.method;
    case Model::Steps:
        return metrics.steps;
    case Model::Drafted:
        return metrics.draftTokens;
    case Model::Accepted:
        return metrics.acceptedTokens;
    case Model::Speed:
        return optionalValue(row.tokensPerSecond);
    default:
        return row.run;
    }
}

QString shownText(const AcceptanceRow& row, int column)
{
    switch (column) {
    case Model::Converter:
        return row.converter.isEmpty() ? missingText() : row.converter;
    case Model::Rate:
        return numberText(100 * row.metrics.acceptanceRate, 1);
    case Model::Interval:
        return QStringLiteral("%1 … %2").arg(numberText(100 * row.metrics.rateLow, 1),
                                             numberText(100 * row.metrics.rateHigh, 1));
    case Model::Length:
        return numberText(row.metrics.meanAcceptanceLength, 2);
    case Model::Delta:
        return row.deltaPp ? signedText(*row.deltaPp, 1) : missingText();
    case Model::Speed:
        return numberText(row.tokensPerSecond, 1);
    default:
        return valueOf(row, column).toString();
    }
}

bool isNumeric(int column)
{
    return column != Model::Converter && column != Model::Variant && column != Model::Task &&
           column != Model::Backend && column != Model::Method && column != Model::Run;
}

struct Header {
    const char* title;
    const char* explanation;
};
constexpr std::array<Header, Model::Columns> headers = {{
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Converter"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Variant"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Task"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Backend"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Rate (%)"),
     QT_TRANSLATE_NOOP("AcceptanceTable", "Accepted tokens over drafted tokens")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "95 % (%)"),
     QT_TRANSLATE_NOOP("AcceptanceTable", "Bootstrap interval of the rate over prompts")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Length"),
     QT_TRANSLATE_NOOP("AcceptanceTable", "Mean acceptance length: 1 + accepted / steps")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Δ (pp)"),
     QT_TRANSLATE_NOOP("AcceptanceTable",
                       "Change against the matched partial-rope draft in percentage points; "
                       "coloured beyond ±0.5")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "k"),
     QT_TRANSLATE_NOOP("AcceptanceTable", "Tokens drafted per step")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Method"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Steps"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Drafted"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Accepted"), ""},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Tokens/s"),
     QT_TRANSLATE_NOOP("AcceptanceTable", "Not measured by replay")},
    {QT_TRANSLATE_NOOP("AcceptanceTable", "Run"), ""},
}};

} // namespace

void AcceptanceTableModel::setRows(std::vector<AcceptanceRow> rows)
{
    beginResetModel();
    m_rows = std::move(rows);
    endResetModel();
}

const AcceptanceRow& AcceptanceTableModel::row(int index) const
{
    return m_rows.at(static_cast<std::size_t>(index));
}

void AcceptanceTableModel::setDark(bool dark)
{
    m_dark = dark;
    if (!m_rows.empty())
        emit dataChanged(index(0, Delta), index(static_cast<int>(m_rows.size()) - 1, Delta),
                         {Qt::ForegroundRole, Qt::BackgroundRole});
}

int AcceptanceTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int AcceptanceTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : Columns;
}

QVariant AcceptanceTableModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const AcceptanceRow& cell = row(index.row());
    const int column = index.column();
    if (role == Qt::DisplayRole)
        return shownText(cell, column);
    if (role == valueRole)
        return valueOf(cell, column);
    if (role == Qt::TextAlignmentRole && column == K)
        return int(Qt::AlignCenter);
    if (role == Qt::TextAlignmentRole && isNumeric(column))
        return int(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ForegroundRole && column == Delta && cell.deltaPp)
        return deltaColor(*cell.deltaPp, m_dark);
    if (role == Qt::BackgroundRole && column == Delta && cell.deltaPp)
        return deltaTint(*cell.deltaPp, m_dark);
    if (role == Qt::FontRole && cell.pooled) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (role == Qt::ToolTipRole)
        return tr("%1: %2 of %3 drafted tokens accepted in %4 steps")
            .arg(cell.run)
            .arg(cell.metrics.acceptedTokens)
            .arg(cell.metrics.draftTokens)
            .arg(cell.metrics.steps);
    return {};
}

QVariant AcceptanceTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= Columns)
        return {};
    const Header& header = headers[static_cast<std::size_t>(section)];
    if (role == Qt::DisplayRole)
        return QCoreApplication::translate("AcceptanceTable", header.title);
    if (role == Qt::ToolTipRole && *header.explanation)
        return QCoreApplication::translate("AcceptanceTable", header.explanation);
    return {};
}

} // namespace mla::ui
