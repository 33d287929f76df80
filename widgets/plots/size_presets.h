// SPDX-License-Identifier: GPL-3.0-or-later
// Usual printed sizes of figures.
#pragma once

#include <array>

namespace mla::ui
{

struct SizePreset {
    const char* name; ///< for people; UTF-8
    double widthMm, heightMm;
};
constexpr std::array<SizePreset, 4> sizePresets{{{"One column, 85 × 60 mm", 85, 60},
                                                 {"One and a half columns, 114 × 76 mm", 114, 76},
                                                 {"Two columns, 178 × 90 mm", 178, 90},
                                                 {"Slide, 254 × 143 mm", 254, 143}}};

} // namespace mla::ui
