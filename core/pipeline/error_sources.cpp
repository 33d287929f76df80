// SPDX-License-Identifier: GPL-3.0-or-later
// Error sources: a draft's conversion, repeated layer by layer with one part of it at a time.
#include <algorithm>
#include <atomic>

#include <nlohmann/json.hpp>

#include "core/convert/converter.h"
#include "core/convert/low_rank_keys.h"
#include "core/evaluate/fidelity.h"
#include "core/export/imported_draft.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/diagnostic_support.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using torch::Tensor;

const char* const kOtherCalibration = "the calibration kept in the draft is not the one that it "
                                      "was converted on: its refinement was given another";

/// Whether the refinement that wrote the draft says that it had a calibration of its own.
bool refinedOnOthers(const DraftMeta& meta)
{
    const auto settings = nlohmann::json::parse(meta.settingsJson, nullptr, false);
    return meta.variant != "converted" && settings.is_object() && settings.contains("calibration");
}

/// Why a draft's conversion cannot be repeated; empty if it can.
Result<std::string> whyNotRepeatable(const DraftPair& pair, const DraftMeta& meta)
{
    if (isImported(pair.draft) || meta.convert.ropeSelect.empty())
        return std::string("another tool converted this draft: it does not tell how");
    MLA_TRY(fingerprint, pair.original.fingerprint());
    if (!meta.sourceFingerprint.empty() && meta.sourceFingerprint != fingerprint)
        return pair.original.directory().string() +
               " is not the checkpoint that this draft was converted from (" + meta.sourcePath +
               "): its fingerprint differs";
    if (refinedOnOthers(meta))
        return std::string(kOtherCalibration);
    if (!fs::exists(calibrationFile(pair.draft.directory())))
        return std::string("the draft's directory lacks the calibration that it was converted on");
    return std::string();
}

/// Rows of `a`, then of `b`, padded to the longer ones.
CalibrationSet joined(const CalibrationSet& a, const CalibrationSet& b)
{
    const std::int64_t length = std::max(a.length(), b.length());
    const auto wide = [&](const Tensor& t) {
        return torch::constant_pad_nd(t, {0, length - t.size(1)});
    };
    return {torch::cat({wide(a.ids), wide(b.ids)}), torch::cat({wide(a.mask), wide(b.mask)}),
            b.source};
}

/// Whether both are the rotation or selection of the same conversion. Eigenvectors have no sign.
bool sameBasis(const KeyBasis& a, const KeyBasis& b)
{
    constexpr double kTolerance = 0.01; // of entries of orthogonal maps: another machine's rounding
    if (a.ropeMap.defined() && b.ropeMap.defined())
        return a.ropeMap.sizes() == b.ropeMap.sizes() &&
               (a.ropeMap.abs() - b.ropeMap.abs()).abs().max().item<double>() < kTolerance;
    return a.permutation.defined() && b.permutation.defined() &&
           torch::equal(a.permutation, b.permutation);
}

class SourcesRun
{
public:
    SourcesRun(JobContext& job, const DiagnosticsRequest& request, DraftPair pair, DraftMeta meta)
        : m_job(job), m_request(request), m_pair(std::move(pair)), m_meta(std::move(meta))
    {
    }
    Result<ErrorSourcesReport> run();

private:
    [[nodiscard]] bool wasRefined() const { return m_meta.variant != "converted"; }
    Status prepare();
    Result<LayerRecord> measure(LayerActivations& layer);
    Status measureConversion(const LayerActivations& layer, ErrorSourcesRecord& sources);
    [[nodiscard]] FidelityRecord fidelity(const LayerActivations& layer, const auto& block) const
    {
        const auto measured = [&](const Tensor& t) {
            return t.narrow(0, m_converted, t.size(0) - m_converted);
        };
        return blockFidelity(std::get<GqaBlock>(layer.weights.attention), block,
                             measured(layer.input), measured(layer.output), measured(m_set.mask));
    }

    JobContext& m_job;
    const DiagnosticsRequest& m_request;
    DraftPair m_pair;
    DraftMeta m_meta;
    ErrorSourcesNote m_note;
    std::unique_ptr<Converter> m_converter; ///< null: the conversion is not repeated
    std::vector<KeyBasis> m_basis;          ///< per layer, of the draft
    CalibrationSet m_set;                   ///< what it was converted on, then what is measured on
    std::int64_t m_converted = 0;           ///< leading sequences: those of the conversion
    std::atomic<bool> m_differs = false;    ///< the repeated conversion is not the draft's
};

Status SourcesRun::prepare()
{
    MLA_TRY(measured, measuredSequences(m_job, m_pair, m_request.calibration, m_request.compute));
    m_note.measuredOn = measured.source;
    if (!wasRefined())
        m_note.noRefinement = "the draft has not been refined";
    MLA_TRY(reason, whyNotRepeatable(m_pair, m_meta));
    m_note.noConversion = reason;
    m_set = std::move(measured);
    if (!reason.empty())
        return {};
    MLA_TRY(stored, loadCalibration(calibrationFile(m_pair.draft.directory())));
    m_converted = stored.sequences() - stored.heldout();
    m_set = joined({stored.ids.narrow(0, 0, m_converted), stored.mask.narrow(0, 0, m_converted),
                    stored.source},
                   m_set);
    MLA_TRY(basis, draftKeyBasis(m_pair.draft, m_meta));
    MLA_TRY(converter, makeConverter(m_meta.convert));
    MLA_CHECK(converter->check(m_pair.original.config()));
    m_basis = std::move(basis);
    m_converter = std::move(converter);
    return {};
}

Status SourcesRun::measureConversion(const LayerActivations& layer, ErrorSourcesRecord& sources)
{
    const GqaBlock& gqa = std::get<GqaBlock>(layer.weights.attention);
    const LayerSample sample{gqa, layer.input.narrow(0, 0, m_converted),
                             m_set.mask.narrow(0, 0, m_converted)};
    MLA_TRY(converted, m_converter->convert(sample, m_meta.convert.kvLoraRank));
    if (!sameBasis(converted.basis, m_basis.at(static_cast<std::size_t>(layer.layer.value)))) {
        m_differs = true;
        return {};
    }
    MLA_TRY(fullRank,
            m_converter->convert(sample, m_converter->fullRank(m_pair.original.config())));
    sources.ropeOnly = fidelity(layer, movedTo(std::move(fullRank.block), m_pair.device));
    sources.rankOnly =
        fidelity(layer, withLowRankKeysValues(gqa, converted.block, converted.basis));
    if (wasRefined())
        sources.both = fidelity(layer, movedTo(std::move(converted.block), m_pair.device));
    return {};
}

Result<LayerRecord> SourcesRun::measure(LayerActivations& layer)
{
    LayerRecord record;
    record.layer = layer.layer;
    record.complete = true;
    MLA_TRY(block, loadMlaBlock(m_pair.draft, layer.layer, m_pair.device));
    (wasRefined() ? record.sources.refined : record.sources.both) = fidelity(layer, block);
    if (m_converter && !m_differs)
        MLA_CHECK(measureConversion(layer, record.sources));
    return record;
}

Result<ErrorSourcesReport> SourcesRun::run()
{
    MLA_CHECK(prepare());
    MLA_TRY(layers, measureLayers(m_job, "error sources", m_pair.original, m_set, m_pair.device,
                                  workerCount(m_request.compute, m_pair.device),
                                  [this](LayerActivations& layer) { return measure(layer); }));
    if (m_differs) {
        m_note.noConversion = kOtherCalibration;
        for (LayerRecord& layer : layers) {
            layer.sources.ropeOnly.reset();
            layer.sources.rankOnly.reset();
            if (wasRefined())
                layer.sources.both.reset();
        }
    }
    MLA_CHECK(updateRun(m_request.study, m_pair.draft, [&](RunRecord& run) {
        run.errorSources = m_note;
        for (const LayerRecord& measured : layers) {
            const auto found = std::ranges::find(run.layers, measured.layer, &LayerRecord::layer);
            if (found != run.layers.end())
                found->sources = measured.sources;
            else // a refinement of some layers records those only
                run.layers.push_back(measured);
        }
        std::ranges::sort(run.layers, {}, &LayerRecord::layer);
    }));
    return ErrorSourcesReport{m_note, std::move(layers)};
}

} // namespace

Result<ErrorSourcesReport> measureErrorSources(JobContext& job, const DiagnosticsRequest& request)
{
    useOneThread();
    MLA_TRY(pair, openDraftPair(request.draft, request.original, request.compute));
    if (pair.draft.config().modelType == "deepseek_v2")
        return badInput("is an export for other programs and does not tell how it was made",
                        request.draft.string(), "measure the draft that it was exported from");
    MLA_CHECK(checkStudyHasRun(request.study, pair.draft));
    MLA_TRY(meta, draftMeta(pair.draft));
    SourcesRun run(job, request, std::move(pair), std::move(meta));
    return guardedResult("error sources", [&] { return run.run(); });
}

} // namespace mla
