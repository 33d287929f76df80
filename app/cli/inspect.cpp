// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <map>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text;
    for (const std::int64_t size : shape)
        text += (text.empty() ? "" : " x ") + std::to_string(size);
    return shape.empty() ? "scalar" : text;
}

/// "model.layers.12.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight"
std::string withoutLayer(const std::string& name)
{
    const std::string marker = "layers.";
    const std::size_t begin = name.find(marker);
    if (begin == std::string::npos)
        return name;
    const std::size_t digits = begin + marker.size();
    const std::size_t end = std::min(name.find_first_not_of("0123456789", digits), name.size());
    return name.substr(0, digits) + "*" + name.substr(end);
}

/// Equal tensors of all layers are one line.
std::string tensorTable(const std::vector<TensorSummary>& tensors)
{
    std::map<std::vector<std::string>, int> kinds;
    for (const TensorSummary& tensor : tensors)
        ++kinds[{withoutLayer(tensor.name), tensor.dtype, shapeText(tensor.shape)}];
    TextTable table({leftColumn("Tensor"), {"Count"}, leftColumn("Type"), leftColumn("Shape")});
    for (const auto& [kind, number] : kinds)
        table.addRow({kind.at(0), std::to_string(number), kind.at(1), kind.at(2)});
    return table.text();
}

std::string cacheTable(const InspectReport& report)
{
    const auto perToken = static_cast<double>(report.cacheBytesPerToken);
    const double ratio = report.cacheElementsPerTokenPerLayer > 0
                             ? report.originalCacheElements / report.cacheElementsPerTokenPerLayer
                             : 0;
    const bool mla = report.attention == "mla";
    std::vector<TextTable::Column> columns = {{"Context (tokens)"}, {"KV cache"}};
    if (mla)
        columns.push_back({"before conversion"});
    TextTable table(std::move(columns));
    constexpr std::int64_t shortest = 1024, longest = 131072, step = 4;
    for (std::int64_t context = shortest; context <= longest; context *= step) {
        const double size = perToken * static_cast<double>(context);
        std::vector<std::string> row = {count(context), bytes(size)};
        if (mla)
            row.push_back(bytes(size * ratio));
        table.addRow(std::move(row));
    }
    return table.text();
}

std::string describe(const InspectReport& r)
{
    constexpr double percent = 100;
    std::string cache =
        number(r.cacheElementsPerTokenPerLayer, 0) + " elements per token and layer";
    if (r.attention == "mla" && r.originalCacheElements > 0)
        cache += " (" +
                 number(percent * r.cacheElementsPerTokenPerLayer / r.originalCacheElements, 1) +
                 " % of " + number(r.originalCacheElements, 0) + ")";
    std::vector<std::pair<std::string, std::string>> lines = {
        {"Model type", r.modelType},
        {"Attention", r.attention},
        {"Layers", std::to_string(r.layers)},
        {"Hidden size", std::to_string(r.hiddenSize)},
        {"Heads", std::to_string(r.heads) + " query, " + std::to_string(r.kvHeads) +
                      " key/value, of size " + std::to_string(r.headDim)},
        {"Vocabulary", count(r.vocabSize)},
        {"Parameters", count(r.parameters) + " (" + r.dtype + ")"},
        {"KV cache", cache + ", " + count(r.cacheBytesPerToken) + " bytes per token"}};
    if (r.converter)
        lines.emplace_back("Converter", *r.converter);
    if (r.kvLoraRank && r.qkRopeHeadDim)
        lines.emplace_back("Latent", "kv_lora_rank " + std::to_string(*r.kvLoraRank) +
                                         ", qk_rope_head_dim " + std::to_string(*r.qkRopeHeadDim));
    std::string text = pairs(lines) + "\n" + cacheTable(r) + "\n" + tensorTable(r.tensors);
    for (const std::string& warning : r.warnings)
        text += "\nwarning: " + warning + "\n";
    return text;
}

json toJson(const InspectReport& r)
{
    json tensors = json::array();
    for (const TensorSummary& tensor : r.tensors)
        tensors.push_back(
            {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
    return {
        {"model_type", r.modelType},
        {"attention", r.attention},
        {"num_hidden_layers", r.layers},
        {"hidden_size", r.hiddenSize},
        {"num_attention_heads", r.heads},
        {"num_key_value_heads", r.kvHeads},
        {"head_dim", r.headDim},
        {"vocab_size", r.vocabSize},
        {"parameters", r.parameters},
        {"dtype", r.dtype},
        {"cache_elements_per_token_per_layer", wholeIfPossible(r.cacheElementsPerTokenPerLayer)},
        {"original_cache_elements_per_token_per_layer", wholeIfPossible(r.originalCacheElements)},
        {"cache_bytes_per_token", r.cacheBytesPerToken},
        {"converter", orNull(r.converter)},
        {"kv_lora_rank", orNull(r.kvLoraRank)},
        {"qk_rope_head_dim", orNull(r.qkRopeHeadDim)},
        {"tensors", std::move(tensors)},
        {"warnings", r.warnings}};
}

class Inspect : public Command
{
public:
    std::string name() const override { return "inspect"; }
    std::string summary() const override
    {
        return "architecture, tensors, KV cache per token, warnings";
    }
    std::string examples() const override
    {
        return "Example: mla-draft inspect models/SmolLM2-135M";
    }
    bool stoppable() const override { return false; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory: original or draft");
    }
    Result<Output> run(JobContext&) override
    {
        MLA_TRY(report, inspectModel(m_model));
        return Output{toJson(report), describe(report), {}};
    }

private:
    std::string m_model;
};

} // namespace

std::unique_ptr<Command> makeInspect()
{
    return std::make_unique<Inspect>();
}

} // namespace mla::cli
