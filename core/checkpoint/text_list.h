// SPDX-License-Identifier: GPL-3.0-or-later
// Shapes and lists of names in messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace mla
{

[[nodiscard]] inline std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

/// A few names of a longer list.
[[nodiscard]] inline std::string listed(const std::vector<std::string>& names)
{
    constexpr std::size_t shown = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(shown, names.size()); ++i)
        text += (i ? ", " : "") + names[i];
    return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more"
                                : text;
}

} // namespace mla
