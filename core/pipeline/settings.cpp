// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/settings.h"

#include <limits>
#include <set>

#include <nlohmann/json.hpp>

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

/// Reads one JSON object field by field. The first failure is kept and later reads do nothing, so
/// that a reader is a plain list of fields.
class ObjectReader
{
public:
    ObjectReader(const json& object, std::string prefix)
        : m_object(object), m_prefix(std::move(prefix))
    {
        if (!m_object.is_object())
            m_status = badInput("settings: " + (m_prefix.empty() ? "the plan" : m_prefix) +
                                " must be an object, got " + m_object.type_name());
    }

    void read(const char* key, std::string& value)
    {
        if (const json* found = take(key); found && expect(found->is_string(), key, "a string"))
            value = found->get<std::string>();
    }
    void read(const char* key, std::filesystem::path& value)
    {
        std::string text = value.string();
        read(key, text);
        value = text;
    }
    void read(const char* key, bool& value)
    {
        if (const json* found = take(key);
            found && expect(found->is_boolean(), key, "true or false"))
            value = found->get<bool>();
    }
    void read(const char* key, double& value)
    {
        if (const json* found = take(key); found && expect(found->is_number(), key, "a number"))
            value = found->get<double>();
    }
    void read(const char* key, int& value)
    {
        const json* found = take(key);
        if (found && expect(fitsInt(*found), key, "a whole number of 32 bits"))
            value = found->get<int>();
    }
    void read(const char* key, std::uint64_t& value)
    {
        const json* found = take(key);
        if (found && expect(found->is_number_unsigned() ||
                                (found->is_number_integer() && found->get<std::int64_t>() >= 0),
                            key, "a whole number that is not negative"))
            value = found->get<std::uint64_t>();
    }
    template <typename T>
    void read(const char* key, std::optional<T>& value)
    {
        const auto found = m_object.is_object() ? m_object.find(key) : m_object.end();
        if (found != m_object.end() && found->is_null()) {
            m_known.insert(key);
            value.reset();
            return;
        }
        T present = value.value_or(T{});
        if (found != m_object.end()) {
            read(key, present);
            value = present;
        }
    }
    void read(const char* key, LayerRange& value)
    {
        readWith(key, [&](ObjectReader& inner) {
            inner.read("first", value.first);
            inner.read("last", value.last);
        });
    }
    template <typename T>
    void readList(const char* key, std::vector<T>& values)
    {
        const json* found = take(key);
        if (!found || !expect(found->is_array(), key, "a list"))
            return;
        values.clear();
        for (const json& item : *found) {
            if (!expect(item.is_string(), key, "a list of strings"))
                return;
            values.emplace_back(item.get<std::string>());
        }
    }
    template <typename Fields>
    void readWith(const char* key, Fields fields)
    {
        if (const json* found = take(key))
            keep(readObject(*found, name(key), fields));
    }
    template <typename T, typename Fields>
    void readObjects(const char* key, std::vector<T>& values, Fields fields)
    {
        const json* found = take(key);
        if (!found || !expect(found->is_array(), key, "a list"))
            return;
        values.clear();
        for (const json& item : *found) {
            const std::string where = name(key) + "[" + std::to_string(values.size()) + "]";
            T& value = values.emplace_back();
            keep(readObject(item, where, [&](ObjectReader& inner) { fields(inner, value); }));
        }
    }
    /// Ok when every key of the object was read and had the right type.
    [[nodiscard]] Status finish() const
    {
        MLA_CHECK(m_status);
        for (const auto& [key, value] : m_object.items())
            if (!m_known.contains(key))
                return badInput("settings: unknown key '" + name(key) + "'");
        return {};
    }

    template <typename Fields>
    static Status readObject(const json& object, const std::string& prefix, Fields fields)
    {
        ObjectReader reader(object, prefix);
        fields(reader);
        return reader.finish();
    }

private:
    [[nodiscard]] std::string name(const std::string& key) const
    {
        return m_prefix.empty() ? key : m_prefix + "." + key;
    }
    const json* take(const char* key)
    {
        m_known.insert(key);
        if (!m_status)
            return nullptr;
        const auto found = m_object.find(key);
        return found == m_object.end() ? nullptr : &*found;
    }
    bool expect(bool right, const char* key, const char* what)
    {
        if (!right)
            keep(badInput("settings: key '" + name(key) + "' must be " + what + ", got " +
                          m_object.at(key).dump()));
        return right;
    }
    void keep(Status status)
    {
        if (m_status && !status)
            m_status = std::move(status);
    }
    static bool fitsInt(const json& value)
    {
        if (value.is_number_unsigned())
            return value.get<std::uint64_t>() <= std::numeric_limits<int>::max();
        return value.is_number_integer() &&
               value.get<std::int64_t>() >= std::numeric_limits<int>::min() &&
               value.get<std::int64_t>() <= std::numeric_limits<int>::max();
    }

    const json& m_object;
    std::string m_prefix;
    std::set<std::string> m_known;
    Status m_status;
};

void readFields(ObjectReader& in, ComputeSettings& s)
{
    in.read("device", s.device);
    in.read("threads", s.threads);
    in.read("seed", s.seed);
    in.read("python", s.python);
}
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
