// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/refine/layer_refiner.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <limits>

#include "core/model/tensors.h"
#include "core/refine/schedule.h"

namespace mla
{
namespace
{

using torch::Tensor;
constexpr int kEvaluations = 12; // of the held-out loss over a training
constexpr int kPatience = 6;     // evaluations without improvement before an early stop
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Shuffled sequences without replacement, a new permutation when one is used up.
class BatchSampler
{
public:
    BatchSampler(std::int64_t count, int batch, std::uint64_t seed, LayerIndex layer)
        : m_count(count), m_batch(std::min<std::int64_t>(batch, count)),
          m_generator(seededGenerator(seed, 0x7e41, static_cast<std::uint64_t>(layer.value)))
    {
    }
    Tensor next()
    {
        if (m_used + m_batch > m_order.numel()) {
            m_order = torch::randperm(m_count, m_generator, torch::kInt64);
            m_used = 0;
        }
        m_used += m_batch;
        return m_order.narrow(0, m_used - m_batch, m_batch);
    }

private:
    std::int64_t m_count, m_batch, m_used = 0;
    torch::Generator m_generator;
    Tensor m_order = torch::empty({0}, torch::kInt64);
};

std::int64_t trainCount(const LayerData& data)
{
    return data.input.size(0) - data.heldout;
}

RefineBatch batchOf(const LayerData& data, const Tensor& rows)
{
    const Tensor index = rows.to(data.input.device());
    return {data.input.index_select(0, index), data.target.index_select(0, index),
            data.mask.to(index.device()).index_select(0, index)};
}

class Trainer
{
public:
    Trainer(const MlaBlock& start, const KeyBasis& basis, const Objective& objective,
            const LayerData& data, const RefineOptions& options)
        : m_basis(basis), m_objective(objective), m_data(data), m_options(options), m_block(start)
    {
        for (Tensor* tensor : m_block.trainable()) {
            *tensor = tensor->detach().clone().requires_grad_(true);
            m_parameters.push_back(*tensor);
        }
        keepBest();
    }
    Result<RefinedLayer> run(JobContext& job);

private:
    [[nodiscard]] double heldout() const
    {
        return heldoutLoss(m_objective, m_block, m_data, m_options.batchSequences);
    }
    /// One optimizer step; the reported loss, or NaN when it or a gradient is not finite.
    double step(torch::optim::AdamW& optimizer, const Tensor& rows);
    void keepBest();
    void record(int step, double train, double heldout, double learningRate);

    const KeyBasis& m_basis;
    const Objective& m_objective;
    const LayerData& m_data;
    const RefineOptions& m_options;
    MlaBlock m_block;
    std::vector<Tensor> m_parameters, m_best;
    LossCurve m_curve;
};

void Trainer::keepBest()
{
    const torch::NoGradGuard noGrad;
    m_best.clear();
    for (const Tensor& parameter : m_parameters)
        m_best.push_back(parameter.detach().clone());
}

double Trainer::step(torch::optim::AdamW& optimizer, const Tensor& rows)
{
    const torch::AutoGradMode enableGrad(true);
    optimizer.zero_grad();
    const Tensor loss = m_objective.loss(m_block, batchOf(m_data, rows));
    const double value = loss.item<double>();
    if (!std::isfinite(value))
        return kNaN;
    (loss / m_objective.scale()).backward();
    if (m_basis.keyRank > 0) { // split SVD: the zero blocks of the up-projection stay zero
        const std::int64_t rank = m_block.rank;
        m_block.wuk.mutable_grad().narrow(1, m_basis.keyRank, rank - m_basis.keyRank).zero_();
        m_block.wuv.mutable_grad().narrow(1, 0, m_basis.keyRank).zero_();
    }
    const double norm = torch::nn::utils::clip_grad_norm_(
        m_parameters,
        m_options.clip > 0 ? m_options.clip : std::numeric_limits<double>::infinity());
    if (!std::isfinite(norm))
        return kNaN;
    optimizer.step();
    return value;
}

void Trainer::record(int step, double train, double heldout, double learningRate)
{
    m_curve.step.push_back(step);
    m_curve.train.push_back(train);
    m_curve.heldout.push_back(heldout);
    m_curve.learningRate.push_back(learningRate);
}

Result<RefinedLayer> Trainer::run(JobContext& job)
{
    torch::optim::AdamW optimizer(m_parameters, torch::optim::AdamWOptions(m_options.learningRate)
                                                    .betas({0.9, 0.95})
                                                    .eps(1e-8)
                                                    .weight_decay(0));
    BatchSampler sampler(trainCount(m_data), m_options.batchSequences, m_options.seed,
                         m_data.layer);
    RefinedLayer out;
    out.lossBefore = out.lossAfter = heldout();
    record(0, kNaN, out.lossBefore, 0);
    job.emitEvent(LossPoint{m_data.layer, 0, kNaN, out.lossBefore, 0});
    const int every = std::max(1, m_options.steps / kEvaluations);
    int bestStep = 0, sinceBest = 0;
    for (int s = 0; s < m_options.steps; ++s) {
        if (job.stopRequested())
            return cancelled();
        const double rate =
            learningRateAt(s, m_options.steps, m_options.learningRate, m_options.warmup);
        for (auto& group : optimizer.param_groups())
            group.options().set_lr(rate);
        const double train = step(optimizer, sampler.next());
        if (!std::isfinite(train)) {
            out.warnings.push_back("layer " + std::to_string(m_data.layer.value) +
                                   ": loss or gradient not finite at step " +
                                   std::to_string(s + 1) + "; its best weights so far are kept");
            break;
        }
        double measured = kNaN;
        if ((s + 1) % every == 0 || s + 1 == m_options.steps) {
            measured = heldout();
            if (measured < out.lossAfter) {
                out.lossAfter = measured;
                bestStep = s + 1;
                sinceBest = 0;
                keepBest();
            } else {
                ++sinceBest;
            }
        }
        record(s + 1, train, measured, rate);
        job.emitEvent(LossPoint{m_data.layer, s + 1, train,
                                std::isnan(measured) ? std::nullopt : std::optional(measured),
                                rate});
        if (sinceBest >= kPatience)
            break;
    }
    const torch::NoGradGuard noGrad;
    std::size_t i = 0;
    for (Tensor* tensor : m_block.trainable())
        *tensor = m_best[i++];
    out.block = m_block;
    out.curve = std::move(m_curve);
    out.keptConverted = bestStep == 0;
    return out;
}

} // namespace

double heldoutLoss(const Objective& objective, const MlaBlock& block, const LayerData& data,
                   int batchSequences)
{
    // Batch by batch with equal weights per sequence, so that memory stays that of one step.
    const torch::NoGradGuard noGrad;
    double sum = 0;
    for (std::int64_t first = 0; first < data.heldout; first += batchSequences) {
        const std::int64_t rows = std::min<std::int64_t>(batchSequences, data.heldout - first);
        const std::int64_t begin = trainCount(data) + first;
        const RefineBatch batch = batchOf(data, torch::arange(begin, begin + rows, torch::kInt64));
        sum += objective.loss(block, batch).item<double>() * static_cast<double>(rows);
    }
    return sum / data.heldout;
}

Result<RefinedLayer> refineLayer(JobContext& job, const MlaBlock& start, const KeyBasis& basis,
                                 const Objective& objective, const LayerData& data,
                                 const RefineOptions& options)
{
    useOneThread();
    Trainer trainer(start, basis, objective, data, options);
    return trainer.run(job);
}

} // namespace mla
