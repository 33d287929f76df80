// SPDX-License-Identifier: GPL-3.0-or-later
#include <fnmatch.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/inspect_output.h"
#include "app/cli/options.h"

namespace mla::cli
{
namespace
{

const char* const planGroup = "What a conversion would cache";
const char* const cacheGroup = "How the cache is used";
const char* const tensorGroup = "Tensors' values";

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
        return "Without --statistics only headers are read, whatever the model's size.\n"
               "Examples:\n"
               "  mla-draft inspect models/SmolLM2-135M\n"
               "  mla-draft inspect models/SmolLM2-135M --converter transmla \\\n"
               "      --qk-rope-head-dim 32 --cache-elements 28% --context 32768\n"
               "  mla-draft inspect models/SmolLM2-135M --statistics --tensor '*.k_proj.*'\n"
               "--json adds to the usual keys: config{}, tensors[{name, dtype, storage, shape, "
               "bytes,\n"
               "file}], cache{context, batch, dtype, bytes, original_bytes}; with --converter "
               "plan{converter,\n"
               "kv_lora_rank, qk_rope_head_dim, cache_elements_per_token_per_layer, share, "
               "cache_bytes,\n"
               "limits{}, warnings[]}; with --statistics statistics[{name, elements, min, max, "
               "mean, std,\n"
               "abs_max, zeros, nan, inf, first_non_finite, row_norm_min, row_norm_max}].";
    }
    /// Only statistics take long, and they watch for a stop.
    bool stoppable() const override { return m_statistics; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory: original or draft");
        declarePlan(parser);
        declareCache(parser);
        CLI::Option* statistics = parser.add_flag(
            "--statistics", m_statistics,
            "read tensors: range, mean, deviation, zeros, NaN and\ninfinities, norms of rows");
        statistics->group(tensorGroup);
        parser
            .add_option("--tensor", m_patterns,
                        "only these; * stands for any characters; may be repeated")
            ->type_name("NAME")
            ->needs(statistics)
            ->group(tensorGroup);
    }
    Result<Output> run(JobContext& job) override
    {
        Inspection inspection;
        MLA_TRY(report, inspectModel(m_model));
        inspection.report = std::move(report);
        MLA_CHECK(takeCacheUse(inspection));
        if (!m_settings.converter.empty()) {
            MLA_TRY(plan, makePlan(inspection.report.config));
            inspection.plan = std::move(plan);
        }
        if (m_statistics) {
            MLA_TRY(names, chosenTensors(inspection.report));
            std::vector<TensorStatistics>& list = inspection.statistics.emplace();
            MLA_CHECK(measureTensors(job, m_model, names, [&](const TensorStatistics& statistics) {
                list.push_back(statistics);
            }));
        }
        return Output{inspectionJson(inspection), inspectionText(inspection), {}};
    }

private:
    void declarePlan(CLI::App& parser)
    {
        m_settings.converter.clear();
        CLI::Option* converter =
            parser.add_option("--converter", m_settings.converter, "transmla or mha2mla")
                ->type_name("NAME")
                ->group(planGroup);
        m_ropeOption = parser
                           .add_option("--qk-rope-head-dim", m_settings.qkRopeHeadDim,
                                       "dimensions of a key head that keep rotary position, even")
                           ->type_name("D")
                           ->check(atLeast(2))
                           ->needs(converter)
                           ->group(planGroup);
        m_rankOption = parser
                           .add_option("--kv-lora-rank", m_settings.kvLoraRank,
                                       "size of the latent that replaces keys and values")
                           ->type_name("R")
                           ->check(atLeast(1))
                           ->needs(converter)
                           ->group(planGroup);
        m_budgetOption = parser
                             .add_option("--cache-elements", m_budget,
                                         "instead of R: elements a token and layer may take, or "
                                         "their share\nof the original's; gives the largest R")
                             ->type_name("N|P%")
                             ->needs(converter)
                             ->excludes(m_rankOption)
                             ->group(planGroup);
    }
    void declareCache(CLI::App& parser)
    {
        m_contextOption = parser.add_option("--context", m_use.context, "tokens of a sequence")
                              ->type_name("N")
                              ->capture_default_str()
                              ->check(CLI::Range(1LL, 1LL << 30))
                              ->group(cacheGroup);
        parser.add_option("--batch", m_use.batch, "sequences at a time")
            ->type_name("N")
            ->capture_default_str()
            ->check(CLI::Range(1LL, 1LL << 20))
            ->group(cacheGroup);
        parser.add_option("--cache-dtype", m_cacheDtype, "fp32, bf16, fp16 or fp8")
            ->type_name("TYPE")
            ->default_str("the model's")
            ->group(cacheGroup);
    }
    Status takeCacheUse(Inspection& inspection) const
    {
        inspection.cacheDtype = m_cacheDtype.empty() ? inspection.report.cacheDtype : m_cacheDtype;
        inspection.use = m_use;
        inspection.contextGiven = m_contextOption->count() > 0;
        for (const CacheType& type : cacheTypes())
            if (inspection.cacheDtype == type.name) {
                inspection.use.bytesPerElement = type.bytesPerElement;
                return {};
            }
        return usageError("--cache-dtype: '" + inspection.cacheDtype +
                          "' is none of fp32, bf16, fp16, fp8");
    }
    Result<CachePlan> makePlan(const ModelConfig& config) const
    {
        if (m_ropeOption->count() == 0)
            return usageError("--converter needs --qk-rope-head-dim");
        if (m_rankOption->count() + m_budgetOption->count() == 0)
            return usageError("--converter needs --kv-lora-rank or --cache-elements");
        CachePlan plan;
        plan.settings = m_settings;
        if (m_budgetOption->count() > 0) {
            MLA_TRY(budget, parseCacheBudget(config, m_budget, "--cache-elements"));
            MLA_TRY(rank, rankForBudget(config, plan.settings, budget));
            plan.settings.kvLoraRank = rank;
        }
        MLA_CHECK(checkConversion(config, plan.settings));
        plan.elements = plannedCacheElements(config, plan.settings);
        plan.limits = conversionLimits(config, plan.settings);
        plan.warnings = conversionIssues(config, plan.settings);
        return plan;
    }
    /// Names that match a pattern, in the model's order; each pattern must match one.
    Result<std::vector<std::string>> chosenTensors(const InspectReport& report) const
    {
        const auto matches = [](const std::string& pattern, const std::string& tensor) {
            return fnmatch(pattern.c_str(), tensor.c_str(), 0) == 0;
        };
        for (const std::string& pattern : m_patterns)
            if (std::ranges::none_of(report.tensors, [&](const TensorSummary& tensor) {
                    return matches(pattern, tensor.name);
                }))
                return badInput("has no tensor '" + pattern + "'", m_model);
        std::vector<std::string> names;
        for (const TensorSummary& tensor : report.tensors)
            if (m_patterns.empty() ||
                std::ranges::any_of(m_patterns, [&](const std::string& pattern) {
                    return matches(pattern, tensor.name);
                }))
                names.push_back(tensor.name);
        return names;
    }

    std::string m_model, m_budget, m_cacheDtype;
    ConvertSettings m_settings;
    CacheUse m_use;
    bool m_statistics = false;
    std::vector<std::string> m_patterns;
    CLI::Option *m_ropeOption = nullptr, *m_rankOption = nullptr, *m_budgetOption = nullptr,
                *m_contextOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeInspect()
{
    return std::make_unique<Inspect>();
}

} // namespace mla::cli
