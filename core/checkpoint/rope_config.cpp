// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/checkpoint/config_parts.h"

namespace mla
{

namespace
{

constexpr double defaultTheta = 10000.0; // RotaryEmbeddingConfigMixin.default_theta

/// rope_type, or the older name "type"; both at once must agree. Parameters of a scaling without a
/// name are not taken for plain rope.
Result<std::string> ropeTypeName(JsonReader& reader, const std::string& where,
                                 const std::string& origin)
{
    if (!reader.has("type") && !reader.has("rope_type")) {
        if (reader.has("factor"))
            reader.require("rope_type");
        MLA_CHECK(reader.status());
        return std::string("default");
    }
    const std::string older = reader.text("type", {});
    const std::string newer = reader.text("rope_type", older);
    MLA_CHECK(reader.status());
    if (!older.empty() && newer != older)
        return badInput("'" + where + "' names two rope types, '" + newer + "' and '" + older + "'",
                        origin);
    return newer;
}

constexpr std::pair<RopeType, const char*> ropeTypes[] = {
    {RopeType::Default, "default"}, {RopeType::Linear, "linear"}, {RopeType::Dynamic, "dynamic"},
    {RopeType::Llama3, "llama3"},   {RopeType::Yarn, "yarn"},
};

const char* nameOf(RopeType type)
{
    return std::ranges::find(ropeTypes, type, &std::pair<RopeType, const char*>::first)->second;
}

Result<RopeType> ropeTypeOf(const std::string& name, const std::string& where,
                            const std::string& origin)
{
    for (const auto& [type, known] : ropeTypes)
        if (name == known)
            return type;
    return badInput("rope type '" + name + "' in '" + where + "' is not supported", origin,
                    "supported: default, linear, dynamic, llama3, yarn");
}

/// A number that null leaves at its fallback.
double numberOr(JsonReader& reader, const char* key, double fallback)
{
    return reader.has(key) ? reader.number(key, fallback) : fallback;
}

/// Tokens of the context before scaling. A top-level key wins, and the context length stands in
/// for an absent one, as in Transformers.
int readOriginalLength(JsonReader& scaling, JsonReader& top, int maxPositionEmbeddings)
{
    constexpr const char* key = "original_max_position_embeddings";
    JsonReader& source = top.has(key) || !scaling.has(key) ? top : scaling;
    return source.has(key) ? source.positive(key, maxPositionEmbeddings) : maxPositionEmbeddings;
}

void readFactor(JsonReader& scaling, RopeConfig& rope)
{
    scaling.require("factor");
    rope.factor = scaling.number("factor", 1);
    if (rope.factor <= 0)
        scaling.fail("factor", "must be positive");
}

void readLlama3(JsonReader& scaling, JsonReader& top, int maxPositionEmbeddings, RopeConfig& rope)
{
    scaling.require("low_freq_factor");
    scaling.require("high_freq_factor");
    rope.lowFreqFactor = scaling.number("low_freq_factor", 0);
    rope.highFreqFactor = scaling.number("high_freq_factor", 0);
    rope.originalMaxPositionEmbeddings = readOriginalLength(scaling, top, maxPositionEmbeddings);
    if (rope.lowFreqFactor <= 0)
        scaling.fail("low_freq_factor", "must be positive");
    if (rope.highFreqFactor <= rope.lowFreqFactor)
        scaling.fail("high_freq_factor", "must be greater than low_freq_factor");
}

/// The amplitude that YaRN asks for when a context grows `factor` times.
double yarnAmplitude(double factor, double mscale = 1)
{
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

void readYarn(JsonReader& scaling, JsonReader& top, const nlohmann::json& object,
              int maxPositionEmbeddings, RopeConfig& rope)
{
    rope.originalMaxPositionEmbeddings = readOriginalLength(scaling, top, maxPositionEmbeddings);
    // Here, and here alone, null stands for the ratio of the two lengths.
    if (const auto it = object.find("factor"); it != object.end() && it->is_null())
        rope.factor =
            static_cast<double>(maxPositionEmbeddings) / rope.originalMaxPositionEmbeddings;
    else
        readFactor(scaling, rope);
    // Zero, as null, stands for the default.
    const auto turns = [&](const char* key, double fallback) {
        const double given = numberOr(scaling, key, fallback);
        if (given < 0)
            scaling.fail(key, "must not be negative");
        return given == 0 ? fallback : given;
    };
    rope.betaFast = turns("beta_fast", rope.betaFast);
    rope.betaSlow = turns("beta_slow", rope.betaSlow);
    rope.truncate = scaling.boolean("truncate", true);
    const double mscale = numberOr(scaling, "mscale", 0);
    const double allDim = numberOr(scaling, "mscale_all_dim", 0);
    const double own = mscale != 0 && allDim != 0
                           ? yarnAmplitude(rope.factor, mscale) / yarnAmplitude(rope.factor, allDim)
                           : yarnAmplitude(rope.factor);
    rope.attentionFactor = numberOr(scaling, "attention_factor", own);
    if (!std::isfinite(rope.attentionFactor) || rope.attentionFactor <= 0)
        scaling.fail("attention_factor", "must be positive");
    if (rope.theta <= 1)
        scaling.fail("rope_theta", "must be above 1");
}

/// The object that holds the scaling, or nullptr for plain rope.
const nlohmann::json* scalingOf(const nlohmann::json& config, std::string& where)
{
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const auto it = config.find(key);
        if (it != config.end() && !it->is_null() && !(it->is_object() && it->empty())) {
            where = key;
            return &*it;
        }
    }
    return nullptr;
}

/// The parameters of the one rope: `object` itself, or what it gives for each layer type when that
/// is the same for all.
Result<nlohmann::json> sharedParameters(const nlohmann::json& object, const std::string& where,
                                        const std::string& origin)
{
    JsonReader reader(object, origin, where);
    MLA_CHECK(reader.status());
    const auto isObject = [](const nlohmann::json& value) { return value.is_object(); };
    if (std::ranges::none_of(object, isObject))
        return object;
    for (const auto& [key, value] : object.items()) {
        if (key != "full_attention" && key != "sliding_attention")
            reader.fail(key, "stands beside parameters per layer type, which is not supported");
        else if (value != object.front())
            reader.fail(key, "differs from '" + object.begin().key() +
                                 "': rope parameters per layer type are not supported");
    }
    MLA_CHECK(reader.status());
    return object.front();
}

/// Reads `object`, the scaling, into `rope`, which holds the top-level keys already.
Status readScaling(const nlohmann::json& object, const std::string& where, JsonReader& top,
                   int maxPositionEmbeddings, const std::string& origin, RopeConfig& rope)
{
    JsonReader scaling(object, origin, where);
    MLA_TRY(name, ropeTypeName(scaling, where, origin));
    MLA_TRY(type, ropeTypeOf(name, where, origin));
    rope.type = type;
    rope.theta = scaling.number("rope_theta", rope.theta);
    if (scaling.number("partial_rotary_factor", 1.0) != 1.0)
        scaling.fail("partial_rotary_factor", "other than 1 is not supported");
    if (type == RopeType::Yarn)
        readYarn(scaling, top, object, maxPositionEmbeddings, rope);
    else if (type != RopeType::Default)
        readFactor(scaling, rope);
    if (type == RopeType::Llama3)
        readLlama3(scaling, top, maxPositionEmbeddings, rope);
    if (type == RopeType::Dynamic)
        rope.originalMaxPositionEmbeddings = maxPositionEmbeddings;
    return scaling.status();
}

} // namespace

Result<RopeConfig> parseRope(const nlohmann::json& config, int maxPositionEmbeddings,
                             const std::string& origin)
{
    RopeConfig rope;
    JsonReader top(config, origin);
    rope.theta = top.number("rope_theta", defaultTheta);
    if (top.number("partial_rotary_factor", 1.0) != 1.0)
        top.fail("partial_rotary_factor", "other than 1 is not supported");
    MLA_CHECK(top.status());
    std::string where;
    if (const nlohmann::json* object = scalingOf(config, where)) {
        MLA_TRY(shared, sharedParameters(*object, where, origin));
        MLA_CHECK(readScaling(shared, where, top, maxPositionEmbeddings, origin, rope));
    }
    if (rope.theta <= 0)
        top.fail("rope_theta", "must be positive");
    MLA_CHECK(top.status());
    return rope;
}

void writeRope(const RopeConfig& rope, nlohmann::json& config)
{
    nlohmann::json parameters = {{"rope_type", "default"}};
    if (rope.type != RopeType::Default) {
        parameters["rope_type"] = nameOf(rope.type);
        parameters["factor"] = rope.factor;
    }
    if (rope.type == RopeType::Llama3) {
        parameters["low_freq_factor"] = rope.lowFreqFactor;
        parameters["high_freq_factor"] = rope.highFreqFactor;
    }
    if (rope.type == RopeType::Yarn) {
        parameters["attention_factor"] = rope.attentionFactor;
        parameters["beta_fast"] = rope.betaFast;
        parameters["beta_slow"] = rope.betaSlow;
        parameters["truncate"] = rope.truncate;
    }
    if (rope.type == RopeType::Llama3 || rope.type == RopeType::Yarn)
        parameters["original_max_position_embeddings"] = rope.originalMaxPositionEmbeddings;
    config.erase("original_max_position_embeddings");
    config["rope_theta"] = rope.theta;
    config["rope_scaling"] = rope.type == RopeType::Default ? nlohmann::json() : parameters;
    parameters["rope_theta"] = rope.theta;
    config["rope_parameters"] = std::move(parameters);
}

} // namespace mla
