// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace mla::cli
{
namespace
{

/// Code points, which is what a terminal aligns for the scripts that occur here.
std::size_t width(const std::string& text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

std::string formatted(const char* format, int decimals, double value)
{
    std::array<char, 64> buffer = {};
    std::snprintf(buffer.data(), buffer.size(), format, decimals, value);
    return buffer.data();
}

std::string padded(const std::string& cell, std::size_t columns, TextTable::Column::Align align)
{
    const std::string blanks(columns - std::min(columns, width(cell)), ' ');
    return align == TextTable::Column::Align::Left ? cell + blanks : blanks + cell;
}

std::string trimmedLine(std::string line)
{
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

} // namespace

std::string number(std::optional<double> value, int decimals)
{
    if (!value || std::isnan(*value))
        return "-";
    constexpr double large = 1e7;
    return formatted(std::abs(*value) < large ? "%.*f" : "%.*e", decimals, *value);
}

std::string count(std::int64_t value)
{
    std::string digits = std::to_string(value);
    constexpr int group = 3;
    const int first = value < 0 ? 1 : 0;
    for (int at = static_cast<int>(digits.size()) - group; at > first; at -= group)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

std::string bytes(double value)
{
    constexpr double step = 1024;
    const std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; value >= step && unit + 1 < units.size(); ++unit)
        value /= step;
    return number(value, unit == 0 ? 0 : 1) + " " + units.at(unit);
}

std::string duration(double seconds)
{
    constexpr int minute = 60, hour = 3600;
    const auto whole = static_cast<std::int64_t>(std::lround(std::max(seconds, 0.0)));
    if (whole < minute)
        return std::to_string(whole) + " s";
    std::array<char, 48> buffer = {};
    const long long hours = whole / hour, minutes = whole % hour / minute, rest = whole % minute;
    if (hours > 0)
        std::snprintf(buffer.data(), buffer.size(), "%lld:%02lld:%02lld", hours, minutes, rest);
    else
        std::snprintf(buffer.data(), buffer.size(), "%lld:%02lld", minutes, rest);
    return buffer.data();
}

std::string printable(const std::string& text)
{
    std::string shown;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7F) {
            shown += c;
        } else {
            std::array<char, 8> escape = {};
            std::snprintf(escape.data(), escape.size(), "\\x%02X", byte);
            shown += escape.data();
        }
    }
    return shown;
}

std::string TextTable::text() const
{
    std::vector<std::size_t> widths;
    for (std::size_t column = 0; column < m_columns.size(); ++column) {
        std::size_t widest = width(m_columns[column].title);
        for (const auto& row : m_rows)
            widest = std::max(widest, width(row.at(column)));
        widths.push_back(widest);
    }
    const auto line = [&](const auto& cellOf) {
        std::string joined;
        for (std::size_t column = 0; column < m_columns.size(); ++column)
            joined += (column ? "  " : "") +
                      padded(cellOf(column), widths[column], m_columns[column].align);
        return trimmedLine(joined);
    };
    std::string table = line([&](std::size_t column) { return m_columns[column].title; });
    table += line([&](std::size_t column) { return std::string(widths[column], '-'); });
    for (const auto& row : m_rows)
        table += line([&](std::size_t column) { return row[column]; });
    return table;
}

std::string pairs(const std::vector<std::pair<std::string, std::string>>& lines)
{
    std::size_t widest = 0;
    for (const auto& [name, value] : lines)
        widest = std::max(widest, width(name));
    std::string text;
    for (const auto& [name, value] : lines)
        text += trimmedLine(padded(name, widest + 2, TextTable::Column::Align::Left) + value);
    return text;
}

} // namespace mla::cli
