// SPDX-License-Identifier: GPL-3.0-or-later
// Every setting of every stage, with its default; the same structs serve the command line, the
// workbench and the study. Plain values: the stages read them, core/pipeline/settings.h adds JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mla
{

struct ComputeSettings {
    std::string device = "auto"; ///< auto | cpu | cuda[:N]
    int threads = 0;             ///< worker threads; 0 = one per core. Never changes a result.
    std::uint64_t seed = 0;
    std::string python = {}; ///< interpreter with Transformers; empty = MLA_PYTHON, else setup.sh's
};

struct CalibrationSettings {
    std::string source = "self"; ///< "self", "self:FILE", or text / JSONL files joined by commas
    int sequences = 128;         ///< N
    int length = 256;            ///< T, tokens
};

struct ConvertSettings {
    std::string converter = "transmla"; ///< transmla | mha2mla
    int kvLoraRank = 0;                 ///< r
    int qkRopeHeadDim = 0;              ///< d_r
    int freqfold = 0;                   ///< TransMLA; 0 = head_dim / d_r, the smallest allowed
    std::string ropeSelect =
        "2-norm";              ///< MHA2MLA: 2-norm | high | low | uniform | distance-weighted
    std::string svd = "joint"; ///< MHA2MLA: joint | split | activation-aware
};

struct LayerRange {
    int first = 0, last = 0; ///< 0-based, inclusive
};

struct RefineSettings {
    std::string objective = "functional"; ///< functional | partial-rope
    int steps = 60;
    std::optional<double> learningRate; ///< default 2e-3 (TransMLA), 4e-3 (MHA2MLA)
    int batchTokens = 1024;             ///< whole sequences, at least one
    double clip = 1.0;                  ///< gradient norm; 0 = off
    double warmup = 0.05;               ///< share of steps
    std::optional<LayerRange> layers;   ///< all when absent
};

/// How a token is chosen; target and draft follow the same rule.
struct SamplingRule {
    double temperature = 0; ///< 0 = greedy, the other two then mean nothing
    int topK = 0;           ///< 0 = all
    double topP = 1;        ///< in (0, 1]
    [[nodiscard]] bool greedy() const { return temperature == 0; }
    bool operator==(const SamplingRule&) const = default;
};

struct AcceptSettings {
    std::vector<std::filesystem::path> tasks; ///< JSONL files; task name = file stem
    int k = 4;
    int maxNewTokens = 64;
    int minNewTokens = 0;               ///< EOS is kept out of both models until then
    std::optional<int> maxPromptTokens; ///< prompts are cut to the first N tokens
    /// Each prompt is one user turn of the target's chat template, rendered by Transformers. Only
    /// the prompt's own text is cut then.
    bool chatTemplate = false;
    std::optional<int> limit; ///< prompts per task
    std::string method;       ///< replay | speculative; empty: chosenMethod()
    std::string backend = "native";
    double temperature = 0;
    int topK = 0;    ///< sampling only, as in SamplingRule
    double topP = 1; ///< likewise
    /// Speed: timed runs over all prompts, behind one prompt that warms up. Not for replay.
    int repeats = 1;
    bool baseline = false; ///< also time plain decoding by the target alone
    /// Replay: what every draft length up to this one would give, with the speed-up that measured
    /// costs of both models predict. 0 = off.
    int sweepK = 0;
    [[nodiscard]] SamplingRule rule() const { return {temperature, topK, topP}; }
    /// The method in words: greedy acceptance is replayed unless the engine itself is asked for.
    [[nodiscard]] std::string chosenMethod() const
    {
        if (!method.empty())
            return method;
        const bool timed = repeats > 1 || baseline;
        return backend == "native" && temperature == 0 && !timed ? "replay" : "speculative";
    }
};

} // namespace mla
