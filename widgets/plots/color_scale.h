// SPDX-License-Identifier: GPL-3.0-or-later
// Colour gradients that are even to the eye and safe for colour-vision deficiencies.
#pragma once

#include <qcustomplot.h>

namespace mla::ui
{

/// Dark blue to yellow, lightness rising evenly (viridis of Smith and van der Walt).
[[nodiscard]] QCPColorGradient viridisGradient();
/// Orange-brown below 0, near white at 0, blue above it: gains are blue everywhere.
[[nodiscard]] QCPColorGradient divergingGradient();

} // namespace mla::ui
