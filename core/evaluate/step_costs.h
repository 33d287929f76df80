// SPDX-License-Identifier: GPL-3.0-or-later
// What one pass of a draft and of a target costs on this machine, for core/evaluate/draft_length.h.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/model/decoder.h"

namespace mla
{

/// Seconds of one cached pass over 1, 2, .. `most` tokens behind `prompt`: medians over a few
/// passes, after one that is not counted.
Result<std::vector<double>> passSeconds(const Decoder& model, const std::vector<int>& prompt,
                                        int most);

} // namespace mla
