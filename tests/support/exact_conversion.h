// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions that lose nothing: the rotary part keeps every frequency and the rank is full, so
// the draft must compute what the original computes.
#pragma once

#include "core/convert/converter.h"
#include "core/pipeline/pipeline.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>

namespace mla::test
{

/// MHA2MLA with d_r = h, or TransMLA with all heads kept rotary at freqfold 1; full rank.
inline ConvertSettings exactSettings(const std::string& converter, const ModelConfig& config)
{
    ConvertSettings settings;
    settings.converter = converter;
    const bool transmla = converter == "transmla";
    settings.qkRopeHeadDim = transmla ? config.numKeyValueHeads * config.headDim : config.headDim;
    settings.freqfold = transmla ? 1 : 0;
    settings.kvLoraRank = must(makeConverter(settings))->fullRank(config);
    return settings;
}

/// max |logit of the draft - logit of the original| over `ids` [B, T], after a conversion of the
/// whole checkpoint to a directory.
inline double exactConversionDifference(const std::filesystem::path& checkpoint,
                                        const std::string& converter, const torch::Tensor& ids)
{
    const QTemporaryDir folder;
    ConvertRequest request;
    request.checkpoint = checkpoint;
    request.output = std::filesystem::path(folder.path().toStdString()) / "draft";
    const Decoder original = openModel(checkpoint);
    request.settings = exactSettings(converter, original.config());
    request.calibration = {"self", 16, 64};
    request.compute.device = "cpu";
    JobContext job;
    const RunOutcome outcome = must(convertCheckpoint(job, request));
    const torch::NoGradGuard noGrad;
    return maxDifference(openModel(outcome.output).logits(ids), original.logits(ids));
}

} // namespace mla::test
