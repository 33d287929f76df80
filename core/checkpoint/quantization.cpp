// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/quantization.h"

#include <algorithm>

#include "core/base/json.h"

namespace mla
{

namespace
{

using nlohmann::json;

constexpr const char* key = "quantization_config";
constexpr const char* supported =
    "supported: fp8 and compressed-tensors (float-quantized), both F8_E4M3";

/// Two positive integers under `name` of `object`, or nothing when it is absent or null.
std::optional<std::pair<std::int64_t, std::int64_t>> readBlock(JsonReader& reader, const char* name)
{
    if (!reader.has(name))
        return std::nullopt;
    const std::vector<int> sizes = reader.integers(name, {}, 1);
    if (sizes.size() == 2)
        return std::pair<std::int64_t, std::int64_t>(sizes[0], sizes[1]);
    reader.fail(name, "must be two positive integers");
    return std::nullopt;
}

std::vector<std::string> readNames(JsonReader& reader, const json& object, const char* name)
{
    std::vector<std::string> names;
    if (!reader.has(name))
        return names;
    const json& list = object.at(name);
    for (const json& item : list.is_array() ? list : json::array({nullptr})) {
        if (!item.is_string()) {
            reader.fail(name, "must be a list of module names");
            break;
        }
        names.push_back(item.get<std::string>());
    }
    return names;
}

Result<Fp8Quantization> readFp8(const json& object, const std::string& origin)
{
    JsonReader reader(object, origin, key);
    Fp8Quantization fp8;
    fp8.scaleSuffix = "_scale_inv";
    // Transformers' FineGrainedFP8Config: blocks of 128 unless the key says otherwise, null for
    // one scale a tensor.
    if (object.contains("weight_block_size"))
        fp8.block = readBlock(reader, "weight_block_size");
    else
        fp8.block = {128, 128};
    if (const std::string format = reader.text("fmt", "e4m3"); format != "e4m3")
        reader.fail("fmt", "is '" + format + "', only e4m3 is supported");
    if (const std::string format = reader.text("scale_fmt", "float");
        format != "float" && format != "ue8m0")
        reader.fail("scale_fmt", "is '" + format + "', only float is supported");
    const std::string scheme = reader.text("activation_scheme", "dynamic");
    if (scheme != "dynamic" && scheme != "static")
        reader.fail("activation_scheme", "is '" + scheme + "', expected dynamic or static");
    fp8.notConverted = readNames(reader, object, "modules_to_not_convert");
    MLA_CHECK(reader.status());
    return fp8;
}

/// The weights of one group of a compressed-tensors config.
Status readGroup(const json& group, const std::string& name, const std::string& origin,
                 Fp8Quantization& fp8)
{
    const std::string prefix = std::string(key) + ".config_groups." + name;
    const bool there =
        group.is_object() && group.contains("weights") && group.at("weights").is_object();
    if (!there)
        return badInput("'" + prefix + ".weights' must be an object", origin);
    const json& weights = group.at("weights");
    JsonReader reader(weights, origin, prefix + ".weights");
    if (const int bits = reader.integer("num_bits", 8, 1); bits != 8)
        reader.fail("num_bits", "is " + std::to_string(bits) + ", only 8 is supported");
    if (const std::string type = reader.text("type", "int"); type != "float")
        reader.fail("type", "is '" + type + "', only float is supported");
    const std::string strategy = reader.text("strategy", "tensor");
    if (strategy != "tensor" && strategy != "channel" && strategy != "block")
        reader.fail("strategy",
                    "is '" + strategy + "', only tensor, channel and block are supported");
    if (strategy == "block") {
        reader.require("block_structure");
        fp8.block = readBlock(reader, "block_structure");
    }
    return reader.status();
}

Result<Fp8Quantization> readCompressed(const json& object, const std::string& origin)
{
    JsonReader reader(object, origin, key);
    Fp8Quantization fp8;
    fp8.scaleSuffix = "_scale";
    if (const std::string format = reader.text("format", ""); format != "float-quantized")
        reader.fail("format", "is '" + format + "', only float-quantized is supported");
    fp8.notConverted = readNames(reader, object, "ignore");
    MLA_CHECK(reader.status());
    const json& groups = object.contains("config_groups") ? object.at("config_groups") : json();
    if (!groups.is_object() || groups.size() != 1)
        return badInput(std::string("'") + key + ".config_groups' must hold one group", origin);
    MLA_CHECK(readGroup(groups.front(), groups.begin().key(), origin, fp8));
    return fp8;
}

std::int64_t ceilDivide(std::int64_t a, std::int64_t b)
{
    return a / b + (a % b != 0 ? 1 : 0);
}

} // namespace

Result<std::optional<Fp8Quantization>> parseQuantization(const json& config,
                                                         const std::string& origin)
{
    if (!config.is_object() || !config.contains(key) || config.at(key).is_null())
        return std::optional<Fp8Quantization>();
    const json& object = config.at(key);
    JsonReader reader(object, origin, key);
    const std::string method = reader.text("quant_method", "");
    MLA_CHECK(reader.status());
    if (method == "fp8") {
        MLA_TRY(fp8, readFp8(object, origin));
        return std::optional(std::move(fp8));
    }
    if (method == "compressed-tensors") {
        MLA_TRY(fp8, readCompressed(object, origin));
        return std::optional(std::move(fp8));
    }
    return badInput(std::string("'") + key + "': quantisation '" + method + "' is not supported",
                    origin, supported);
}

std::optional<ScaleGrid> scaleGrid(const Fp8Quantization& quantization,
                                   const std::vector<std::int64_t>& weightShape,
                                   const std::vector<std::int64_t>& scaleShape)
{
    if (weightShape.size() != 2)
        return std::nullopt;
    const std::int64_t rows = weightShape[0], columns = weightShape[1];
    if (quantization.block) {
        const auto [blockRows, blockColumns] = *quantization.block;
        const ScaleGrid grid{blockRows, blockColumns, ceilDivide(columns, blockColumns)};
        if (scaleShape != std::vector{ceilDivide(rows, blockRows), grid.gridColumns})
            return std::nullopt;
        return grid;
    }
    if (scaleShape.empty() || scaleShape == std::vector<std::int64_t>{1})
        return ScaleGrid{std::max<std::int64_t>(rows, 1), std::max<std::int64_t>(columns, 1), 1};
    if (scaleShape == std::vector<std::int64_t>{rows, 1})
        return ScaleGrid{1, std::max<std::int64_t>(columns, 1), 1};
    return std::nullopt;
}

} // namespace mla
