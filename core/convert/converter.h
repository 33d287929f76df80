// SPDX-License-Identifier: GPL-3.0-or-later
// From one GQA attention block to one MLA block. A converter is one source file behind this
// interface plus one line in the registry (converter.cpp). All statistics are taken in fp64.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/base/torch.h"
#include "core/checkpoint/model_config.h"
#include "core/model/gqa_attention.h"
#include "core/model/key_basis.h"
#include "core/model/mla_attention.h"
#include "core/store/records.h"

namespace mla
{

/// What the converter sees of one layer.
struct LayerSample {
    const GqaBlock& block; ///< fp32
    torch::Tensor x;       ///< [N, T, d] post-input_layernorm calibration states, fp32
    torch::Tensor mask;    ///< [N, T] bool
    /// Valid rows of x as fp64 [n, d].
    [[nodiscard]] torch::Tensor rows() const;
};

struct ConvertedLayer {
    MlaBlock block; ///< fp32
    KeyBasis basis;
    std::vector<std::vector<int>>
        ropePairs; ///< [n_r][d_r / 2] indices into the source's frequencies
    SpectrumRecord spectrum;
    RopeRecord rope; ///< energies; distances are filled by ropeResidual()
};

class Converter
{
public:
    explicit Converter(const ConvertSettings& settings) : m_settings(settings) {}
    virtual ~Converter() = default;
    /// Whether this model can be converted with these settings; names the setting and its bound.
    [[nodiscard]] Status check(const ModelConfig& config) const;
    /// The largest useful kv_lora_rank for this model: at it, only the rotary change is lossy.
    [[nodiscard]] int fullRank(const ModelConfig& config) const;
    /// `rank` overrides the settings' kv_lora_rank (fullRank() for diagnostics).
    [[nodiscard]] virtual Result<ConvertedLayer> convert(const LayerSample& sample,
                                                         int rank) const = 0;

protected:
    const ConvertSettings m_settings;
};

/// The converter that `settings` name, or a Usage error listing the known names.
Result<std::unique_ptr<Converter>> makeConverter(const ConvertSettings& settings);
std::vector<std::string> converterNames();

/// Makers for the registry.
std::unique_ptr<Converter> makeTransMla(const ConvertSettings& settings);
std::unique_ptr<Converter> makeMha2Mla(const ConvertSettings& settings);

} // namespace mla
