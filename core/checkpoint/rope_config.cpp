// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <numbers>

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

Result<RopeType> ropeTypeOf(const std::string& name, const std::string& where,
                            const std::string& origin)
{
    if (name == "default")
        return RopeType::Default;
    if (name == "linear")
        return RopeType::Linear;
    if (name == "llama3")
        return RopeType::Llama3;
    return badInput("rope type '" + name + "' in '" + where + "' is not supported", origin,
                    "supported: default, linear, llama3");
}

void readLlama3(JsonReader& scaling, JsonReader& top, int maxPositionEmbeddings, RopeConfig& rope)
{
    scaling.require("low_freq_factor");
    scaling.require("high_freq_factor");
    rope.lowFreqFactor = scaling.number("low_freq_factor", 0);
    rope.highFreqFactor = scaling.number("high_freq_factor", 0);
    // A top-level key wins, and the context length stands in for an absent one, as in Transformers.
    const bool own = scaling.has("original_max_position_embeddings");
    JsonReader& source = top.has("original_max_position_embeddings") || !own ? top : scaling;
    rope.originalMaxPositionEmbeddings =
        source.positive("original_max_position_embeddings", maxPositionEmbeddings);
    if (rope.lowFreqFactor <= 0)
        scaling.fail("low_freq_factor", "must be positive");
    if (rope.highFreqFactor <= rope.lowFreqFactor)
        scaling.fail("high_freq_factor", "must be greater than low_freq_factor");
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

} // namespace

Result<RopeConfig> parseRope(const nlohmann::json& config, int maxPositionEmbeddings,
                             const std::string& origin)
{
    RopeConfig rope;
    JsonReader top(config, origin);
    rope.theta = top.number("rope_theta", defaultTheta);
    if (top.number("partial_rotary_factor", 1.0) != 1.0)
        top.fail("partial_rotary_factor", "other than 1 is not supported");
    std::string where;
    const nlohmann::json* object = scalingOf(config, where);
    if (object) {
        JsonReader scaling(*object, origin, where);
        MLA_TRY(name, ropeTypeName(scaling, where, origin));
        for (const auto& [key, value] : object->items())
            if (value.is_object())
                scaling.fail(key, "gives parameters per layer type, which is not supported");
        MLA_CHECK(scaling.status());
        MLA_TRY(type, ropeTypeOf(name, where, origin));
        rope.type = type;
        rope.theta = scaling.number("rope_theta", rope.theta);
        if (scaling.number("partial_rotary_factor", 1.0) != 1.0)
            scaling.fail("partial_rotary_factor", "other than 1 is not supported");
        if (rope.type != RopeType::Default) {
            scaling.require("factor");
            rope.factor = scaling.number("factor", 1);
            if (rope.factor <= 0)
                scaling.fail("factor", "must be positive");
        }
        if (rope.type == RopeType::Llama3)
            readLlama3(scaling, top, maxPositionEmbeddings, rope);
        MLA_CHECK(scaling.status());
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
        parameters["rope_type"] = rope.type == RopeType::Linear ? "linear" : "llama3";
        parameters["factor"] = rope.factor;
    }
    if (rope.type == RopeType::Llama3) {
        parameters["low_freq_factor"] = rope.lowFreqFactor;
        parameters["high_freq_factor"] = rope.highFreqFactor;
        parameters["original_max_position_embeddings"] = rope.originalMaxPositionEmbeddings;
    }
    config.erase("original_max_position_embeddings");
    config["rope_theta"] = rope.theta;
    config["rope_scaling"] = rope.type == RopeType::Default ? nlohmann::json() : parameters;
    parameters["rope_theta"] = rope.theta;
    config["rope_parameters"] = std::move(parameters);
}

std::vector<double> inverseFrequencies(const RopeConfig& rope, int dim)
{
    std::vector<double> frequencies;
    frequencies.reserve(static_cast<std::size_t>(dim / 2));
    const double original = rope.originalMaxPositionEmbeddings;
    for (int pair = 0; pair < dim / 2; ++pair) {
        double frequency = std::pow(rope.theta, -2.0 * pair / dim);
        if (rope.type == RopeType::Linear)
            frequency /= rope.factor;
        if (rope.type == RopeType::Llama3) {
            // Turns over the original context: many keep their frequency, few are slowed by the
            // factor, those in between are blended.
            const double turns = original * frequency / (2 * std::numbers::pi);
            const double smooth =
                (turns - rope.lowFreqFactor) / (rope.highFreqFactor - rope.lowFreqFactor);
            if (turns < rope.lowFreqFactor)
                frequency /= rope.factor;
            else if (turns <= rope.highFreqFactor)
                frequency *= (1 - smooth) / rope.factor + smooth;
        }
        frequencies.push_back(frequency);
    }
    return frequencies;
}

} // namespace mla
