// SPDX-License-Identifier: GPL-3.0-or-later
// The one way core includes LibTorch; precompiled.
#pragma once

#include <torch/torch.h>
