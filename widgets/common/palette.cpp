// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mla::ui
{
namespace
{

struct RoleTones {
    const char* role;
    QRgb light, dark;
};
// Okabe and Ito's hues (vermillion, blue, bluish green, reddish purple, grey), with lightness tuned
// so that every pair differs by CIEDE2000 >= 15 under protanopia, deuteranopia and tritanopia.
constexpr std::array<RoleTones, 6> kRoles{{
    {"original", 0xFF2B2B2B, 0xFFF4F4F4},
    {"converted", 0xFFF74608, 0xFFE37B2B},
    {"partial-rope", 0xFF1D63D3, 0xFF6F86FF},
    {"functional", 0xFF00A770, 0xFF27D59C},
    {"train", 0xFFA38AA1, 0xFF7C7A80},
    {"heldout", 0xFF9E276D, 0xFFC3ACC8},
}};
constexpr std::array<std::array<QRgb, 2>, 8> kSeries{{
    {0xFF1D63D3, 0xFF6F86FF},
    {0xFFC85200, 0xFFE37B2B},
    {0xFF00855A, 0xFF27D59C},
    {0xFF9E276D, 0xFFE38AC0},
    {0xFF2E8FB8, 0xFF6CC7EE},
    {0xFF8A6D00, 0xFFE6CF5A},
    {0xFF6B4FA3, 0xFFB9A2F0},
    {0xFF5A5A5A, 0xFFBDBDBD},
}};

constexpr double kMaterial = 0.5; // percentage points

double linear(double channel)
{
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& color)
{
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
           0.0722 * linear(color.blueF());
}

} // namespace

PlotTheme lightPlotTheme()
{
    return {false,
            QColor("#FFFFFF"),
            QColor("#1F2328"),
            QColor("#5C6570"),
            QColor("#6E7781"),
            QColor("#E4E7EB"),
            QColor("#F1F3F5"),
            QColor("#FFC83D")};
}

PlotTheme darkPlotTheme()
{
    return {true,
            QColor("#1E2126"),
            QColor("#E6E9ED"),
            QColor("#A3ABB5"),
            QColor("#8A929C"),
            QColor("#343941"),
            QColor("#292D34"),
            QColor("#FFD15C")};
}

PlotTheme exportPlotTheme()
{
    PlotTheme theme = lightPlotTheme();
    theme.text = QColor("#000000");
    theme.mutedText = QColor("#404040");
    theme.axis = QColor("#404040");
    return theme;
}

bool isDark(const QPalette& palette)
{
    return luminance(palette.color(QPalette::Window)) < 0.18;
}

PlotTheme plotThemeFor(const QPalette& palette)
{
    return isDark(palette) ? darkPlotTheme() : lightPlotTheme();
}

QStringList plotRoles()
{
    QStringList names;
    for (const RoleTones& tones : kRoles)
        names << QString::fromLatin1(tones.role);
    return names;
}

QColor roleColor(const QString& role, bool dark)
{
    for (const RoleTones& tones : kRoles)
        if (role == QLatin1String(tones.role))
            return QColor::fromRgb(dark ? tones.dark : tones.light);
    return {};
}

QColor seriesColor(int index, bool dark)
{
    const auto slot = static_cast<std::size_t>(std::max(index, 0)) % kSeries.size();
    return QColor::fromRgb(kSeries[slot][dark ? 1 : 0]);
}

QColor deltaColor(double percentagePoints, bool dark)
{
    if (percentagePoints > kMaterial)
        return QColor(dark ? "#6FA8FF" : "#1559C7");
    if (percentagePoints < -kMaterial)
        return QColor(dark ? "#F0913F" : "#B84300");
    return QColor(dark ? "#A3ABB5" : "#5C6570");
}

QVariant deltaTint(double percentagePoints, bool dark)
{
    if (!(std::abs(percentagePoints) > kMaterial))
        return {};
    const bool better = percentagePoints > 0;
    if (dark)
        return QColor(better ? "#1D2F4A" : "#43301F");
    return QColor(better ? "#E3EDFC" : "#FBE9DD");
}

double contrastRatio(const QColor& a, const QColor& b)
{
    const double first = luminance(a) + 0.05, second = luminance(b) + 0.05;
    return std::max(first, second) / std::min(first, second);
}

} // namespace mla::ui
