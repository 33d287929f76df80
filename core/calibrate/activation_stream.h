// SPDX-License-Identifier: GPL-3.0-or-later
// One forward pass of the original over the calibration set, layer by layer: what each layer's
// attention sees and computes. Memory: one buffer of N T d, plus what the caller keeps.
#pragma once

#include <optional>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/calibrate/corpus.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/decoder.h"

namespace mla
{

struct LayerActivations {
    LayerIndex layer;
    DecoderLayer weights;
    torch::Tensor input;  ///< [N, T, d] post-input_layernorm states of the original
    torch::Tensor output; ///< [N, T, d] its attention output after W_O
};

class ActivationStream
{
public:
    static Result<ActivationStream> create(const Checkpoint& checkpoint, const CalibrationSet& set,
                                           torch::Device device, int workers);
    /// The next layer, or nothing after the last. Layers come in order.
    Result<std::optional<LayerActivations>> next(JobContext& job);

private:
    ActivationStream(const Checkpoint& checkpoint, torch::Tensor hidden, int workers)
        : m_checkpoint(&checkpoint), m_hidden(std::move(hidden)), m_workers(workers)
    {
    }
    const Checkpoint* m_checkpoint;
    torch::Tensor m_hidden; ///< [N, T, d] input of layer m_next
    int m_next = 0;
    int m_workers;
};

} // namespace mla
