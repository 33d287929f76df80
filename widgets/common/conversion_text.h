// SPDX-License-Identifier: GPL-3.0-or-later
// core's limits of a conversion in the window's own words.
#pragma once

#include <QString>

#include "core/convert/conversion_limits.h"

namespace mla::ui
{

/// One sentence that stands beside the field of the setting; the field is not named again.
[[nodiscard]] QString issueText(const ConversionIssue& issue, const ModelConfig& config,
                                const ConvertSettings& settings);
[[nodiscard]] QString converterTitle(const std::string& converter); ///< "TransMLA"

} // namespace mla::ui
