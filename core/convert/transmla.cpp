// SPDX-License-Identifier: GPL-3.0-or-later
// TransMLA (arXiv 2502.07864): RoRoPE concentrates the rotary information of all KV heads in one
// rotary key head, then a joint low-rank latent carries the rest of the keys and the values.
// Design section 4. Notation: G KV heads, h head_dim, f freqfold, c = h / d_r collapse.
#include "core/convert/converter.h"

#include <cmath>

#include "core/convert/rank_spectrum.h"

namespace mla
{
namespace
{

using torch::Tensor;
constexpr double kDamping =
    0.01; // of the mean diagonal; keeps eigh well-posed, moves no eigenvector

/// Orthogonal rotation of the stacked KV heads [G h], split into rows that stay rotary and the
/// rest.
struct Rotation {
    Tensor rotary; ///< [d_r, G h], half-split: first halves of the pairs, then second
    Tensor nope;   ///< [G h - d_r, G h]
    std::vector<int> frequencies; ///< [d_r / 2] source frequency index of each kept pair
};

/// Eigenvectors (columns, descending) of a second-moment matrix with damping, and its eigenvalues
/// (ascending, without the damping).
std::pair<Tensor, Tensor> principalAxes(const Tensor& secondMoment)
{
    const Tensor eye = torch::eye(secondMoment.size(0), secondMoment.options());
    const Tensor damping = kDamping * secondMoment.diagonal().mean();
    const auto [values, vectors] = torch::linalg_eigh(secondMoment + damping * eye);
    return {vectors.flip(1), values - damping};
}

struct Sizes {
    int kvHeads, headDim, ropeDim, freqfold;
    [[nodiscard]] int half() const { return headDim / 2; }
    [[nodiscard]] int groups() const { return half() / freqfold; }
    /// Components a group of G f keeps rotary: f / c, or more heads' worth when d_r > h.
    [[nodiscard]] int keptPerGroup() const { return freqfold * ropeDim / headDim; }
    [[nodiscard]] int width() const { return kvHeads * headDim; }
    /// Source frequency of kept component j of group n.
    [[nodiscard]] int frequencyOf(int group, int component) const
    {
        const int collapse = std::max(1, headDim / ropeDim);
        return group * freqfold + (component * collapse) % freqfold;
    }
};

/// Rows of the rotation for one half of one group: [G f, G h], zero outside the group's columns.
Tensor groupRows(const Sizes& s, const Tensor& axes, int group, int half)
{
    Tensor rows = torch::zeros({s.kvHeads * s.freqfold, s.width()}, axes.options());
    for (int head = 0; head < s.kvHeads; ++head)
        rows.narrow(1, head * s.headDim + half * s.half() + group * s.freqfold, s.freqfold)
            .copy_(axes.t().narrow(1, head * s.freqfold, s.freqfold));
    return rows;
}

/// Principal axes of each frequency group over the KV heads, the same for both halves of a pair:
/// such a rotation commutes with RoPE as far as the group's frequencies are equal.
Rotation rotateHeads(const Sizes& s, const Tensor& keys /* [n, G h] */)
{
    const Tensor z = keys.view({keys.size(0), s.kvHeads, 2, s.half()});
    std::vector<Tensor> first, second, rest;
    Rotation rotation;
    for (int group = 0; group < s.groups(); ++group) {
        const Tensor y = z.narrow(3, group * s.freqfold, s.freqfold)
                             .permute({0, 2, 1, 3})
                             .reshape({-1, s.kvHeads * s.freqfold}); // [2 n, G f]
        const Tensor axes = principalAxes(y.t().matmul(y)).first;
        const Tensor a = groupRows(s, axes, group, 0), b = groupRows(s, axes, group, 1);
        const int kept = s.keptPerGroup(), dropped = static_cast<int>(a.size(0)) - kept;
        first.push_back(a.narrow(0, 0, kept));
        second.push_back(b.narrow(0, 0, kept));
        rest.push_back(a.narrow(0, kept, dropped));
        rest.push_back(b.narrow(0, kept, dropped));
        for (int component = 0; component < kept; ++component)
            rotation.frequencies.push_back(s.frequencyOf(group, component));
    }
    first.insert(first.end(), second.begin(), second.end());
    rotation.rotary = torch::cat(first);
    rotation.nope = torch::cat(rest);
    return rotation;
}

/// The stacked weight with its bias as one more column: [G h, d + 1].
Tensor withBias(const Tensor& weight, const Tensor& bias)
{
    const Tensor w = weight.to(torch::kCPU, torch::kFloat64);
    const Tensor column = bias.defined() ? bias.to(torch::kCPU, torch::kFloat64)
                                         : torch::zeros({w.size(0)}, w.options());
    return torch::cat({w, column.unsqueeze(1)}, 1);
}

class TransMla final : public Converter
{
public:
    using Converter::Converter;
    [[nodiscard]] Result<ConvertedLayer> convert(const LayerSample& sample,
                                                 int rank) const override;

private:
    [[nodiscard]] Sizes sizes(int kvHeads, int headDim) const
    {
        const int collapse = std::max(1, headDim / m_settings.qkRopeHeadDim);
        return {kvHeads, headDim, m_settings.qkRopeHeadDim,
                m_settings.freqfold > 0 ? m_settings.freqfold : collapse};
    }
};

/// Shares of key energy per source head and pair, and the part the rotary rows keep of each.
RopeRecord keyEnergies(const Sizes& s, const Tensor& keys, const Rotation& rotation)
{
    const auto perPair = [&](const Tensor& k) {
        return k.view({-1, s.kvHeads, 2, s.half()}).pow(2).sum({0, 2}); // [G, h/2]
    };
    const Tensor energy = perPair(keys);
    const Tensor lost = perPair(keys - keys.matmul(rotation.rotary.t()).matmul(rotation.rotary));
    const Tensor total = energy.sum();
    RopeRecord record;
    record.heads = s.kvHeads;
    record.pairs = s.half();
    record.keyEnergy = toVector(energy / total);
    record.keptEnergy = toVector((energy - lost).clamp_min(0) / total);
    return record;
}

Result<ConvertedLayer> TransMla::convert(const LayerSample& sample, int rank) const
{
    const GqaBlock& gqa = sample.block;
    const Sizes s = sizes(gqa.kvHeads, gqa.headDim);
    const int nope = s.width() - s.ropeDim, d = gqa.hidden();
    const Tensor wk = withBias(gqa.wk, gqa.bk), wv = withBias(gqa.wv, gqa.bv);
    const Tensor x = sample.rows(); // [n, d]
    const auto apply = [&](const Tensor& w) {
        return torch::linear(x, w.narrow(1, 0, d), w.select(1, d));
    };
    const Tensor keys = apply(wk), values = apply(wv);
    const Rotation rotation = rotateHeads(s, keys);

    // Joint PCA of [K_nope / rho, V].
    const Tensor nopeKeys = keys.matmul(rotation.nope.t());
    const double rho = nope == 0 ? 1.0
                                 : nopeKeys.norm(2, {0}).mean().item<double>() /
                                       values.norm(2, {0}).mean().item<double>();
    if (!(rho > 0) || !std::isfinite(rho))
        return computeFailed(
            "keys or values vanish on the calibration data (rho = " + std::to_string(rho) + ")");
    const Tensor joint = torch::cat({nopeKeys / rho, values}, 1);
    const auto [axes, eigenvalues] = principalAxes(joint.t().matmul(joint));
    const Tensor u = axes.narrow(1, 0, rank); // [nope + G h, r]
    const Tensor down =
        u.t().matmul(torch::cat({rotation.nope.matmul(wk) / rho, wv}, 0)); // [r, d + 1]

    ConvertedLayer out;
    MlaBlock& block = out.block;
    block.heads = block.upHeads = gqa.heads;
    block.ropeKeyHeads = 1;
    block.nopeDim = nope == 0 ? 0 : s.headDim;
    block.vDim = s.headDim;
    block.ropeDim = s.ropeDim;
    block.rank = rank;
    block.scale = gqa.scale;
    block.window = gqa.window;
    out.ropePairs = {rotation.frequencies};

    // Query head i meets KV head i / g: its keys are rows of the identity, rotated like the keys.
    const Tensor headMap = torch::eye(s.width(), x.options())
                               .view({s.kvHeads, s.headDim, s.width()})
                               .repeat_interleave(gqa.group(), 0); // [H, h, G h]
    const Tensor ropeMap = headMap.matmul(rotation.rotary.t());    // [H, h, d_r]
    const Tensor nopeMap = headMap.matmul(rotation.nope.t());      // [H, h, nope]
    const Tensor wq = withBias(gqa.wq, gqa.bq).view({gqa.heads, s.headDim, d + 1});
    const Tensor rotaryQuery = ropeMap.transpose(1, 2).matmul(wq); // [H, d_r, d + 1]
    const Tensor query = (nope == 0 ? rotaryQuery : torch::cat({wq, rotaryQuery}, 1)).flatten(0, 1);
    const Tensor rotaryKey = rotation.rotary.matmul(wk); // [d_r, d + 1]
    const Tensor up = headMap.matmul(u.narrow(0, nope, s.width()));

    const auto weight = [&](const Tensor& t) {
        return t.narrow(-1, 0, d).to(torch::kFloat32).contiguous();
    };
    const auto bias = [&](const Tensor& t) {
        return t.select(-1, d).to(torch::kFloat32).contiguous();
    };
    block.wq = weight(query);
    block.wdkv = weight(down);
    block.wkr = weight(rotaryKey);
    block.wuk = nope == 0 ? torch::empty({0, rank})
                          : (rho * nopeMap.matmul(u.narrow(0, 0, nope)))
                                .flatten(0, 1)
                                .to(torch::kFloat32)
                                .contiguous();
    block.wuv = up.flatten(0, 1).to(torch::kFloat32).contiguous();
    if (gqa.bq.defined()) {
        block.bq = bias(query);
        block.bdkv = bias(down);
        block.bkr = bias(rotaryKey);
    }
    block.wo = gqa.wo;
    block.bo = gqa.bo;
    std::vector<double> chosen;
    const Tensor source = gqa.frequencies.to(torch::kCPU);
    for (const int f : rotation.frequencies)
        chosen.push_back(source[0][f].item<double>());
    block.frequencies = torch::tensor(chosen, torch::kFloat64).unsqueeze(0);

    out.basis.ropeMap = ropeMap.to(torch::kFloat32).contiguous();
    out.spectrum = spectrumAtRank(weightSpectrum(gqa), singularFromEigen(eigenvalues), rank);
    out.rope = keyEnergies(s, keys, rotation);
    return out;
}

} // namespace

std::unique_ptr<Converter> makeTransMla(const ConvertSettings& settings)
{
    return std::make_unique<TransMla>(settings);
}

} // namespace mla
