// SPDX-License-Identifier: GPL-3.0-or-later
// Singular values and what a rank keeps of them (design section 5).
#pragma once

#include "core/base/torch.h"
#include "core/model/gqa_attention.h"
#include "core/store/records.h"

namespace mla
{

/// Singular values of the stacked [W_k; W_v], descending, fp64.
std::vector<double> weightSpectrum(const GqaBlock& block);

/// Record of `activations` (singular values, descending) at rank r: retained energy, effective rank
/// exp(entropy of squared values), relative tail bound.
SpectrumRecord spectrumAtRank(std::vector<double> weights, std::vector<double> activations,
                              int rank);

/// What a joint latent without rotary part would have to hold: singular values of [K / rho, V] over
/// the valid rows of x [N, T, d] (pre-RoPE keys and values with biases, rho = mean column norm of K
/// over that of V), with those of the weights beside them. The rank is left 0.
SpectrumRecord keyValueSpectrum(const GqaBlock& block, const torch::Tensor& x,
                                const torch::Tensor& mask);

/// Descending singular values from the eigenvalues of a second-moment matrix (ascending, as eigh
/// returns them), negative rounding clipped to zero.
std::vector<double> singularFromEigen(const torch::Tensor& eigenvalues);

std::vector<double> toVector(const torch::Tensor& values);

} // namespace mla
