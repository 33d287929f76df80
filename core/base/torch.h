// SPDX-License-Identifier: GPL-3.0-or-later
// The one way core includes LibTorch; precompiled. Tensors, their operators, autograd and devices:
// <torch/torch.h> would add modules, optimizers and data loaders, and 8 s to every source file. A
// source that needs more includes it beside this one (<torch/autograd.h> for autograd::Function).
#pragma once

#include <torch/types.h>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/cuda.h>
