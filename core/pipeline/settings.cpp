// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/settings.h"

#include <nlohmann/json.hpp>

#include "core/pipeline/object_reader.h"

using nlohmann::json;

namespace mla
{
namespace
{

template <typename T>
json orNull(const std::optional<T>& value)
{
    return value ? json(*value) : json(nullptr);
}

void readFields(ObjectReader& in, ComputeSettings& s)
{
    in.read("device", s.device);
    in.read("threads", s.threads);
    in.read("seed", s.seed);
    in.read("python", s.python);
}

} // namespace

void readFields(ObjectReader& in, CalibrationSettings& s)
{
    in.read("source", s.source);
    in.read("sequences", s.sequences);
    in.read("length", s.length);
}
void readFields(ObjectReader& in, ConvertSettings& s)
{
    in.read("converter", s.converter);
    in.read("kv_lora_rank", s.kvLoraRank);
    in.read("qk_rope_head_dim", s.qkRopeHeadDim);
    in.read("freqfold", s.freqfold);
    in.read("rope_select", s.ropeSelect);
    in.read("svd", s.svd);
}
void readFields(ObjectReader& in, RefineSettings& s)
{
    in.read("objective", s.objective);
    in.read("steps", s.steps);
    in.read("learning_rate", s.learningRate);
    in.read("batch_tokens", s.batchTokens);
    in.read("clip", s.clip);
    in.read("warmup", s.warmup);
    in.read("layers", s.layers);
}
void readFields(ObjectReader& in, AcceptSettings& s)
{
    in.readList("tasks", s.tasks);
    in.read("k", s.k);
    in.read("max_new_tokens", s.maxNewTokens);
    in.read("min_new_tokens", s.minNewTokens);
    in.read("max_prompt_tokens", s.maxPromptTokens);
    in.read("limit", s.limit);
    in.read("chat_template", s.chatTemplate);
    in.read("method", s.method);
    in.read("backend", s.backend);
    in.read("temperature", s.temperature);
    in.read("top_k", s.topK);
    in.read("top_p", s.topP);
    in.read("repeats", s.repeats);
    in.read("baseline", s.baseline);
    in.read("sweep_k", s.sweepK);
}

namespace
{

void readFields(ObjectReader& in, StudyPlan& s)
{
    in.read("checkpoint", s.checkpoint);
    in.read("target", s.target);
    in.read("study", s.study);
    in.read("drafts", s.drafts);
    in.readWith("calibration", [&](ObjectReader& inner) { readFields(inner, s.calibration); });
    in.readObjects("conversions", s.conversions,
                   [](ObjectReader& inner, ConvertSettings& item) { readFields(inner, item); });
    in.readList("objectives", s.objectives);
    in.readWith("refine", [&](ObjectReader& inner) { readFields(inner, s.refine); });
    in.readWith("accept", [&](ObjectReader& inner) { readFields(inner, s.accept); });
    in.read("perplexity_text", s.perplexityText);
    in.readWith("compute", [&](ObjectReader& inner) { readFields(inner, s.compute); });
    in.read("resume", s.resume);
}

} // namespace

json toJson(const ComputeSettings& s)
{
    return {{"device", s.device}, {"threads", s.threads}, {"seed", s.seed}, {"python", s.python}};
}

json toJson(const CalibrationSettings& s)
{
    return {{"source", s.source}, {"sequences", s.sequences}, {"length", s.length}};
}

json toJson(const ConvertSettings& s)
{
    return {{"converter", s.converter},
            {"kv_lora_rank", s.kvLoraRank},
            {"qk_rope_head_dim", s.qkRopeHeadDim},
            {"freqfold", s.freqfold},
            {"rope_select", s.ropeSelect},
            {"svd", s.svd}};
}

json toJson(const RefineSettings& s)
{
    json layers;
    if (s.layers)
        layers = {{"first", s.layers->first}, {"last", s.layers->last}};
    return {{"objective", s.objective},
            {"steps", s.steps},
            {"learning_rate", orNull(s.learningRate)},
            {"batch_tokens", s.batchTokens},
            {"clip", s.clip},
            {"warmup", s.warmup},
            {"layers", std::move(layers)}};
}

json toJson(const AcceptSettings& s)
{
    json tasks = json::array();
    for (const std::filesystem::path& task : s.tasks)
        tasks.push_back(task.string());
    return {{"tasks", std::move(tasks)},
            {"k", s.k},
            {"max_new_tokens", s.maxNewTokens},
            {"min_new_tokens", s.minNewTokens},
            {"max_prompt_tokens", orNull(s.maxPromptTokens)},
            {"limit", orNull(s.limit)},
            {"chat_template", s.chatTemplate},
            {"method", s.method},
            {"backend", s.backend},
            {"temperature", s.temperature},
            {"top_k", s.topK},
            {"top_p", s.topP},
            {"repeats", s.repeats},
            {"baseline", s.baseline},
            {"sweep_k", s.sweepK}};
}

json toJson(const StudyPlan& s)
{
    json conversions = json::array();
    for (const ConvertSettings& conversion : s.conversions)
        conversions.push_back(toJson(conversion));
    return {{"checkpoint", s.checkpoint.string()},
            {"target", s.target.string()},
            {"study", s.study.string()},
            {"drafts", s.drafts.string()},
            {"calibration", toJson(s.calibration)},
            {"conversions", std::move(conversions)},
            {"objectives", s.objectives},
            {"refine", toJson(s.refine)},
            {"accept", toJson(s.accept)},
            {"perplexity_text", s.perplexityText.string()},
            {"compute", toJson(s.compute)},
            {"resume", s.resume}};
}

Result<StudyPlan> studyPlanFromJson(const json& plan)
{
    StudyPlan read;
    MLA_CHECK(ObjectReader::readObject(plan, {}, [&](ObjectReader& in) { readFields(in, read); }));
    return read;
}

} // namespace mla
