// SPDX-License-Identifier: GPL-3.0-or-later
// One integer tensor that torch.save wrote (a ZIP archive with a pickle): MHA2MLA keeps its choice
// of rotary dims so. Nothing in the pickle is executed; anything but such a tensor is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/base/result.h"

namespace mla
{

struct IntegerTensor {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> values; ///< row-major
};

/// At most 16 MiB; the error names the file.
Result<IntegerTensor> readTorchIntegers(const std::filesystem::path& path);

} // namespace mla
