// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/fidelity_output.h"
#include "app/cli/options.h"

namespace mla::cli
{
namespace
{

class Fidelity : public Command
{
public:
    std::string name() const override { return "fidelity"; }
    std::string summary() const override
    {
        return "how closely a draft's attention blocks compute what the original's do";
    }
    std::string examples() const override
    {
        return "--error-sources repeats the draft's conversion from what the draft keeps of it: "
               "rotary alone\n"
               "is the converter at full rank, low rank alone its latent with every pair rotary.\n"
               "Example: mla-draft fidelity drafts/my-draft --original models/SmolLM2-135M\n"
               "         mla-draft fidelity drafts/my-draft --original models/SmolLM2-135M "
               "--error-sources\n"
               "             --positions --text book.txt --attention-map 3:0 --prompt \"Once upon "
               "a time\"";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_draft, "DRAFT", "draft directory");
        parser.add_option("--original", m_original, "the model it was converted from")
            ->type_name("DIR")
            ->required();
        declareDiagnostics(parser);
        m_calibrationOption = addCalibrationOptions(parser, m_calibration, true);
    }
    Result<Output> run(JobContext& job) override
    {
        DiagnosticsRequest request{m_draft, m_original, {}, common.compute, optionalPath(m_study)};
        if (m_calibrationOption->count() > 0) {
            MLA_CHECK(validate(m_calibration));
            request.calibration = m_calibration;
        }
        if (request.study && !m_errorSources && !m_positions && m_maps.empty())
            return usageError("--study receives what --error-sources, --positions and "
                              "--attention-map measure: give one of them");
        MLA_TRY(maps, mapRequests(request));
        FidelityResults results;
        MLA_TRY(report, measureFidelity(job, request.draft, request.original, request.calibration,
                                        request.compute));
        results.report = std::move(report);
        MLA_CHECK(diagnose(job, request, maps, results));
        return fidelityOutput(results);
    }

private:
    void declareDiagnostics(CLI::App& parser)
    {
        const char* const group = "Diagnostics";
        parser
            .add_flag("--error-sources", m_errorSources,
                      "per layer: rotary alone, low rank alone, both, after refinement")
            ->group(group);
        CLI::Option* positions =
            parser
                .add_flag("--positions", m_positions,
                          "perplexity and KL by position in the text, up to 2,048")
                ->group(group);
        parser.add_option("--text", m_text, "text file for --positions")
            ->type_name("FILE")
            ->default_str("the sequences of --calibration")
            ->needs(positions)
            ->group(group);
        CLI::Option* maps =
            parser
                .add_option("--attention-map", m_maps,
                            "attention probabilities of a head, 0-based, on --prompt;\nmay be "
                            "given several times")
                ->type_name("LAYER:HEAD")
                ->allow_extra_args(false)
                ->group(group);
        CLI::Option* prompt = parser.add_option("--prompt", m_prompt, "text of at most 128 tokens")
                                  ->type_name("TEXT")
                                  ->needs(maps)
                                  ->group(group);
        maps->needs(prompt);
        addStudyOption(parser, m_study)->group(group);
    }

    /// "3:0" as layer 3, head 0.
    Result<AttentionMapRequest> mapRequest(const std::string& text,
                                           const DiagnosticsRequest& request) const
    {
        const std::size_t colon = std::min(text.find(':'), text.size());
        const auto layer = parseIds(text.substr(0, colon), "--attention-map");
        const auto head =
            parseIds(text.substr(std::min(colon + 1, text.size())), "--attention-map");
        if (!layer || !head || layer->size() != 1 || head->size() != 1)
            return usageError("--attention-map must be LAYER:HEAD (0-based), got '" + text + "'");
        return AttentionMapRequest{request, LayerIndex(layer->front()), HeadIndex(head->front()),
                                   m_prompt};
    }
    Result<std::vector<AttentionMapRequest>> mapRequests(const DiagnosticsRequest& request) const
    {
        std::vector<AttentionMapRequest> requests;
        for (const std::string& text : m_maps) {
            MLA_TRY(each, mapRequest(text, request));
            requests.push_back(std::move(each));
        }
        return requests;
    }

    Status diagnose(JobContext& job, const DiagnosticsRequest& request,
                    const std::vector<AttentionMapRequest>& maps, FidelityResults& results) const
    {
        if (m_errorSources) {
            MLA_TRY(sources, measureErrorSources(job, request));
            results.sources = std::move(sources);
        }
        if (m_positions) {
            MLA_TRY(positions, measurePositions(job, {request, optionalPath(m_text)}));
            results.positions = std::move(positions);
        }
        for (const AttentionMapRequest& each : maps) {
            MLA_TRY(map, measureAttentionMap(job, each));
            results.maps.push_back(std::move(map));
        }
        return {};
    }

    std::string m_draft, m_original, m_text, m_prompt, m_study;
    std::vector<std::string> m_maps;
    bool m_errorSources = false, m_positions = false;
    CalibrationSettings m_calibration;
    CLI::Option* m_calibrationOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeFidelity()
{
    return std::make_unique<Fidelity>();
}

} // namespace mla::cli
