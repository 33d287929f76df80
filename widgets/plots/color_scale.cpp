// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/color_scale.h"

#include <array>

namespace mla::ui
{
namespace
{

constexpr int kLevels = 256;

template <std::size_t N>
QCPColorGradient gradientOf(const std::array<QRgb, N>& colors)
{
    QCPColorGradient gradient;
    gradient.clearColorStops();
    for (std::size_t i = 0; i < N; ++i)
        gradient.setColorStopAt(static_cast<double>(i) / (N - 1), QColor::fromRgb(colors[i]));
    gradient.setLevelCount(kLevels);
    gradient.setNanHandling(QCPColorGradient::nhNanColor);
    gradient.setNanColor(QColor("#9AA0A6"));
    return gradient;
}

} // namespace

QCPColorGradient viridisGradient()
{
    return gradientOf<17>({0xFF440154, 0xFF48186A, 0xFF472D7B, 0xFF424086, 0xFF3B528B, 0xFF33638D,
                           0xFF2C728E, 0xFF26828E, 0xFF21918C, 0xFF1FA088, 0xFF28AE80, 0xFF3FBC73,
                           0xFF5EC962, 0xFF84D44B, 0xFFADDC30, 0xFFD8E219, 0xFFFDE725});
}

QCPColorGradient divergingGradient()
{
    return gradientOf<9>({0xFF6B3002, 0xFFB35806, 0xFFE4913B, 0xFFF6CFA0, 0xFFF7F7F5, 0xFFB0D2E7,
                          0xFF5B9BCB, 0xFF2166AC, 0xFF08306B});
}

} // namespace mla::ui
