// SPDX-License-Identifier: GPL-3.0-or-later
// Results for people: numbers, units and aligned tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mla::cli
{

/// Fixed-point with `decimals` places; exponent form beyond 1e7; "-" for no value or NaN.
std::string number(std::optional<double> value, int decimals);
/// 1,234,567
std::string count(std::int64_t value);
/// "3.2 KiB"
std::string bytes(double value);
/// "1:02:03", "4:05" or "6 s"
std::string duration(double seconds);
/// Control characters and line ends as escapes, so that a token stays on its line.
std::string printable(const std::string& text);

/// Columns as wide as their widest cell. Numbers stand right, the columns named in `left` left.
class TextTable
{
public:
    struct Column {
        std::string title;
        enum class Align { Left, Right } align = Align::Right;
    };
    explicit TextTable(std::vector<Column> columns) : m_columns(std::move(columns)) {}
    void addRow(std::vector<std::string> cells) { m_rows.push_back(std::move(cells)); }
    [[nodiscard]] std::string text() const; ///< lines, each ended by a newline

private:
    std::vector<Column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
};
inline TextTable::Column leftColumn(std::string title)
{
    return {std::move(title), TextTable::Column::Align::Left};
}

/// "name   value" lines, aligned.
std::string pairs(const std::vector<std::pair<std::string, std::string>>& lines);

} // namespace mla::cli
