// SPDX-License-Identifier: GPL-3.0-or-later
// Tables as CSV (RFC 4180), LaTeX (booktabs) and Markdown (GitHub's tables).
#include <algorithm>
#include <cmath>

#include "core/report/report_text.h"
#include "core/report/tables.h"

namespace mla
{

namespace
{

constexpr auto noValue = "–";

std::string heading(const Column& column)
{
    return column.unit.empty() ? column.name : column.name + " (" + column.unit + ")";
}

/// Numbers with every digit; an absent value is an empty field.
std::string exactCell(const Cell& cell)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        return *text;
    if (const auto* number = std::get_if<double>(&cell))
        return exactText(*number);
    if (const auto* integer = std::get_if<std::int64_t>(&cell))
        return std::to_string(*integer);
    return {};
}

std::string csvField(const std::string& text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string field = "\"";
    for (const char c : text)
        field.append(c == '"' ? 2 : 1, c);
    return field + '"';
}

std::string latexCharacter(char c)
{
    switch (c) {
    case '&':
    case '%':
    case '$':
    case '#':
    case '_':
    case '{':
    case '}':
        return std::string("\\") + c;
    case '~':
        return "\\textasciitilde{}";
    case '^':
        return "\\textasciicircum{}";
    case '\\':
        return "\\textbackslash{}";
    case '<':
        return "\\textless{}";
    case '>':
        return "\\textgreater{}";
    case '|':
        return "\\textbar{}";
    case '"':
        return "\\textquotedbl{}";
    case '\n':
    case '\r':
    case '\t':
        return " ";
    default:
        return std::string(1, c);
    }
}

std::string latexText(const std::string& text)
{
    std::string result;
    for (const char c : text)
        result += latexCharacter(c);
    const std::pair<std::string, std::string> symbols[] = {
        {"×", "$\\times$"}, {"–", "--"}, {"—", "---"}, {"−", "$-$"}};
    for (const auto& [symbol, command] : symbols)
        for (std::size_t at = result.find(symbol); at != std::string::npos;
             at = result.find(symbol, at + command.size()))
            result.replace(at, symbol.size(), command);
    return result;
}

std::string markdownText(const std::string& text)
{
    std::string result;
    for (const char c : text) {
        if (c == '|' || c == '\\' || c == '*' || c == '`')
            result += '\\';
        if (c == '<')
            result += "&lt;";
        else
            result += c == '\n' || c == '\r' ? ' ' : c;
    }
    return result;
}

/// Columns of numbers stand right.
bool isNumeric(const Table& table, std::size_t column)
{
    bool numbers = false;
    for (const std::vector<Cell>& row : table.rows) {
        if (std::holds_alternative<std::string>(row[column]))
            return false;
        numbers = numbers || !std::holds_alternative<std::monostate>(row[column]);
    }
    return numbers;
}

/// The cells of one line, each put through `text`, joined by `separator`.
template <typename Items, typename Text>
std::string joined(const Items& items, const std::string& separator, Text text)
{
    std::string line;
    for (std::size_t i = 0; i < items.size(); ++i)
        line += (i > 0 ? separator : "") + text(i);
    return line;
}

} // namespace

std::string cellText(const Cell& cell, const Column& column)
{
    if (const auto* number = std::get_if<double>(&cell))
        return column.withSign ? signedText(*number, column.decimals)
                               : fixedText(*number, column.decimals);
    if (const auto* count = std::get_if<std::int64_t>(&cell); count && column.withSign)
        return signedText(static_cast<double>(*count), 0);
    return std::holds_alternative<std::monostate>(cell) ? noValue : exactCell(cell);
}

std::string toCsv(const Table& table)
{
    std::string csv = joined(table.columns, ",", [&table](std::size_t i) {
        return csvField(heading(table.columns[i]));
    });
    csv += "\r\n";
    for (const std::vector<Cell>& row : table.rows)
        csv += joined(row, ",", [&row](std::size_t i) { return csvField(exactCell(row[i])); }) +
               "\r\n";
    return csv;
}

std::string toLatex(const Table& table)
{
    std::string latex = "\\begin{table}\n\\centering\n\\caption{" + latexText(table.title) +
                        "}\n\\label{tab:" + fileStem(table.id) + "}\n\\begin{tabular}{";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        latex += isNumeric(table, i) ? 'r' : 'l';
    latex += "}\n\\toprule\n";
    latex += joined(table.columns, " & ",
                    [&table](std::size_t i) { return latexText(heading(table.columns[i])); });
    latex += " \\\\\n\\midrule\n";
    for (const std::vector<Cell>& row : table.rows)
        latex +=
            joined(row, " & ",
                   [&](std::size_t i) { return latexText(cellText(row[i], table.columns[i])); }) +
            " \\\\\n";
    return latex + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string toMarkdown(const Table& table)
{
    const auto line = [](const std::string& cells) { return "| " + cells + " |\n"; };
    std::string markdown = "**" + markdownText(table.title) + "**\n\n";
    markdown += line(joined(table.columns, " | ", [&table](std::size_t i) {
        return markdownText(heading(table.columns[i]));
    }));
    markdown += line(joined(table.columns, " | ", [&table](std::size_t i) -> std::string {
        return isNumeric(table, i) ? "---:" : "---";
    }));
    for (const std::vector<Cell>& row : table.rows)
        markdown += line(joined(row, " | ", [&](std::size_t i) {
            return markdownText(cellText(row[i], table.columns[i]));
        }));
    return markdown;
}

const std::vector<TableFormat>& tableFormats()
{
    static const std::vector<TableFormat> formats = {
        {"csv", ".csv", toCsv}, {"latex", ".tex", toLatex}, {"md", ".md", toMarkdown}};
    return formats;
}

const TableFormat* findTableFormat(const std::string& name)
{
    const auto& formats = tableFormats();
    const auto found = std::ranges::find(formats, name, &TableFormat::name);
    return found == formats.end() ? nullptr : &*found;
}

} // namespace mla
