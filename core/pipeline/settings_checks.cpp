// SPDX-License-Identifier: GPL-3.0-or-later
// validate() of every settings struct: messages name the command line's options.
#include "core/pipeline/settings.h"

#include <cmath>
#include <initializer_list>
#include <set>

namespace mla
{
namespace
{

/// A name that must be one of `known`; those of `later` versions get their own answer.
Status checkChoice(const std::string& option, const std::string& value,
                   std::initializer_list<const char*> known,
                   std::initializer_list<const char*> later = {})
{
    std::string list;
    for (const char* name : known) {
        if (value == name)
            return {};
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    for (const char* name : later)
        if (value == name)
            return usageError(option + " " + value + " is not available in this version",
                              "available: " + list);
    return usageError(option + ": '" + value + "' is none of " + list);
}

Status checkAtLeast(const std::string& option, int value, int least)
{
    if (value >= least)
        return {};
    return usageError(option + " must be at least " + std::to_string(least) + ", got " +
                      std::to_string(value));
}

} // namespace

Status validate(const ConvertSettings& s)
{
    MLA_CHECK(checkChoice("--converter", s.converter, {"transmla", "mha2mla"}, {"auto"}));
    MLA_CHECK(checkAtLeast("--kv-lora-rank", s.kvLoraRank, 1));
    MLA_CHECK(checkAtLeast("--qk-rope-head-dim", s.qkRopeHeadDim, 2));
    if (s.qkRopeHeadDim % 2 != 0)
        return usageError("--qk-rope-head-dim must be even (RoPE rotates pairs), got " +
                          std::to_string(s.qkRopeHeadDim));
    MLA_CHECK(checkAtLeast("--freqfold", s.freqfold, 0));
    MLA_CHECK(checkChoice("--rope-select", s.ropeSelect,
                          {"2-norm", "high", "low", "uniform", "distance-weighted"}));
    MLA_CHECK(checkChoice("--svd", s.svd, {"joint", "split", "activation-aware"}));
    const ConvertSettings defaults;
    if (s.converter == "mha2mla" && s.freqfold != defaults.freqfold)
        return usageError("--freqfold belongs to --converter transmla, not mha2mla");
    if (s.converter == "transmla" && s.ropeSelect != defaults.ropeSelect)
        return usageError("--rope-select belongs to --converter mha2mla, not transmla");
    if (s.converter == "transmla" && s.svd != defaults.svd)
        return usageError("--svd belongs to --converter mha2mla, not transmla");
    return {};
}

Status validate(const RefineSettings& s)
{
    MLA_CHECK(checkChoice("--objective", s.objective, {"functional", "partial-rope"}));
    MLA_CHECK(checkAtLeast("--steps", s.steps, 1));
    if (s.learningRate && !(std::isfinite(*s.learningRate) && *s.learningRate > 0))
        return usageError("--lr must be a positive number");
    MLA_CHECK(checkAtLeast("--batch-tokens", s.batchTokens, 1));
    if (!(std::isfinite(s.clip) && s.clip >= 0))
        return usageError("the clipping norm must be 0 (off) or a positive number");
    if (!(s.warmup >= 0 && s.warmup <= 1))
        return usageError("the warm-up must be a share of the steps, 0 to 1");
    if (s.layers && (s.layers->first < 0 || s.layers->last < s.layers->first))
        return usageError("--layers must be A-B with 0 <= A <= B, got " +
                          std::to_string(s.layers->first) + "-" + std::to_string(s.layers->last));
    return {};
}

namespace
{

/// What only one of the methods can give.
Status checkMethod(const AcceptSettings& s)
{
    if (s.method == "replay" && s.backend != "native")
        return usageError("--method replay is this program's own: it belongs to --backend native");
    const bool replay = s.chosenMethod() == "replay";
    if (replay && (s.repeats > 1 || s.baseline))
        return usageError("--repeats and --baseline time the engine: they need --method "
                          "speculative");
    if (!replay && s.sweepK > 0)
        return usageError("--sweep-k replays stored texts: it needs --method replay");
    return {};
}

} // namespace

Status validate(const AcceptSettings& s)
{
    std::set<std::string> names;
    for (const std::filesystem::path& task : s.tasks)
        if (!names.insert(task.stem().string()).second)
            return usageError("--tasks: two files give the task name '" + task.stem().string() +
                                  "'",
                              "a task is named after its file; rename one");
    MLA_CHECK(checkAtLeast("-k", s.k, 1));
    MLA_CHECK(checkAtLeast("--max-new-tokens", s.maxNewTokens, 1));
    MLA_CHECK(checkAtLeast("--min-new-tokens", s.minNewTokens, 0));
    if (s.minNewTokens > s.maxNewTokens)
        return usageError("--min-new-tokens (" + std::to_string(s.minNewTokens) +
                          ") is above --max-new-tokens (" + std::to_string(s.maxNewTokens) + ")");
    if (s.maxPromptTokens)
        MLA_CHECK(checkAtLeast("--max-prompt-tokens", *s.maxPromptTokens, 1));
    if (s.limit)
        MLA_CHECK(checkAtLeast("--limit", *s.limit, 1));
    MLA_CHECK(checkChoice("--backend", s.backend, {"native", "hf", "vllm"}));
    if (!s.method.empty())
        MLA_CHECK(checkChoice("--method", s.method, {"replay", "speculative"}));
    if (!(std::isfinite(s.temperature) && s.temperature >= 0))
        return usageError("--temperature must be 0 or a positive number");
    MLA_CHECK(checkAtLeast("--top-k", s.topK, 0));
    if (!(s.topP > 0 && s.topP <= 1))
        return usageError("--top-p must be above 0 and at most 1");
    if (s.temperature == 0 && (s.topK != 0 || s.topP != 1))
        return usageError("--top-k and --top-p are for sampling: give a --temperature above 0");
    MLA_CHECK(checkAtLeast("--repeats", s.repeats, 1));
    MLA_CHECK(checkAtLeast("--sweep-k", s.sweepK, 0));
    return checkMethod(s);
}

Status validate(const CalibrationSettings& s)
{
    if (s.source.empty() || s.source == "self:")
        return usageError("--calibration: expected 'self', 'self:FILE' or text or JSONL files");
    MLA_CHECK(checkAtLeast("--sequences", s.sequences, 2));
    MLA_CHECK(checkAtLeast("--length", s.length, 2));
    return {};
}

} // namespace mla
