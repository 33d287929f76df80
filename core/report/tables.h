// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of a study, as data and as CSV (RFC 4180), LaTeX (booktabs) and Markdown.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/report/figure_data.h"
#include "core/store/records.h"

namespace mla
{

struct StudyCells;

struct Column {
    std::string name, unit;
    int decimals = 3;      ///< of numbers
    bool withSign = false; ///< "+1.2": for differences
};
using Cell =
    std::variant<std::monostate, std::string, double, std::int64_t>; ///< monostate: no value
struct Table {
    std::string id, title;
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
};

/// One row per draft: converter, variant, mean relative error, perplexity, acceptance rate (%),
/// mean acceptance length, cache elements; `original` first. The rate is pooled over the steps of
/// all tasks, the mean of the tasks' rates stands beside it. A draft measured in several ways (k,
/// target, backend, method, temperature) has a row for each, since such steps must not be pooled.
Table variantTable(const StudyData& study);
Table acceptanceTable(const StudyData& study); ///< one row per measurement
Table layerTable(const RunRecord& run);        ///< one row per layer
Table figureTable(const Figure& figure);       ///< the table twin of a figure

/// One row per matched cell: the variants' acceptance, the differences in percentage points with
/// their 95 % bootstrap intervals, the verdict at +-0.5 points, recovery, throughput.
Table matchedTable(const StudyCells& cells);
/// Verdicts counted by family and converter, all together last; the paper's verdict beside.
Table crossoverTable(const StudyCells& cells);
/// The counts and verdicts that the paper published, for comparison; nothing of them is measured
/// here.
Table paperTable();

/// Every table of a study but the twins of figures, in reading order.
std::vector<Table> allTables(const StudyData& study);

[[nodiscard]] std::string cellText(const Cell& cell, const Column& column);
[[nodiscard]] std::string toCsv(const Table& table); ///< full precision
[[nodiscard]] std::string toLatex(const Table& table);
[[nodiscard]] std::string toMarkdown(const Table& table);

struct TableFormat {
    std::string name, extension; ///< "latex", ".tex"
    std::string (*render)(const Table&);
};
/// csv, latex, md.
[[nodiscard]] const std::vector<TableFormat>& tableFormats();
/// Null for an unknown name.
[[nodiscard]] const TableFormat* findTableFormat(const std::string& name);

} // namespace mla
