// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers and times as the window shows them. Missing values are an en dash.
#pragma once

#include <optional>

#include <QString>

namespace mla::ui
{

[[nodiscard]] QString missingText();
[[nodiscard]] QString numberText(double value, int decimals);
[[nodiscard]] QString numberText(const std::optional<double>& value, int decimals);
/// Three or four significant digits whatever the size: losses, perplexities.
[[nodiscard]] QString significantText(double value);
[[nodiscard]] QString signedText(double value, int decimals); ///< "+1.2", "−0.4" (true minus sign)
[[nodiscard]] QString durationText(double seconds);           ///< "0:07", "12:34", "1:02:03"
[[nodiscard]] QString countText(qint64 count);                ///< "1,234,567"
[[nodiscard]] QString bytesText(qint64 bytes);                ///< "1.4 GiB"

} // namespace mla::ui
