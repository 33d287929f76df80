// SPDX-License-Identifier: GPL-3.0-or-later
// How well what someone types fits a name: pure, and apart from any view.
#pragma once

#include <optional>

#include <QStringView>

namespace mla::ui
{

/// Higher fits better; none if the letters of `typed` do not occur in `name` in their order. Names
/// whose words begin with the words typed come before those that merely hold the letters; then
/// earlier and closer letters count. Case and spaces do not matter. Nothing typed fits every name.
[[nodiscard]] std::optional<int> fuzzyScore(QStringView typed, QStringView name);

} // namespace mla::ui
