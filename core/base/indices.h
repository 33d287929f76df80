// SPDX-License-Identifier: GPL-3.0-or-later
// Strong index types: a layer number can't be passed where a head number is meant.
#pragma once

#include <compare>

namespace mla
{

template <typename Tag>
struct Index {
    int value = 0;
    constexpr Index() = default;
    constexpr explicit Index(int v) : value(v) {}
    constexpr auto operator<=>(const Index&) const = default;
};
using LayerIndex = Index<struct LayerTag>; ///< 0-based decoder layer
using HeadIndex = Index<struct HeadTag>;   ///< 0-based attention head (query or KV, as stated)

} // namespace mla
