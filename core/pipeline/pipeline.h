// SPDX-License-Identifier: GPL-3.0-or-later
// The stages as the command line and the workbench call them: files in, files and plain results
// out. Everything here may be called from any one thread at a time; long calls watch
// job.stopRequested(). No torch in this header.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/checkpoint/config_properties.h"
#include "core/checkpoint/tensor_statistics.h"
#include "core/evaluate/acceptance.h"
#include "core/evaluate/draft_length.h"
#include "core/export/export_layouts.h"
#include "core/pipeline/settings.h"
#include "core/store/records.h"

namespace mla
{

// ---- looking at one model --------------------------------------------------------------------

struct TensorSummary {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::string storage;    ///< how it is stored, for people: "BF16"
    std::int64_t bytes = 0; ///< stored
    std::string file;       ///< within the model's directory
    [[nodiscard]] std::int64_t elements() const;
};
struct InspectReport {
    std::string modelType, attention; ///< attention: "gqa" | "mla"
    int layers = 0, hiddenSize = 0, heads = 0, kvHeads = 0, headDim = 0, vocabSize = 0;
    std::int64_t parameters = 0;
    std::int64_t weightBytes = 0;             ///< of all tensors, as stored
    double cacheElementsPerTokenPerLayer = 0; ///< mean over layers
    double originalCacheElements = 0;         ///< 2 G h
    std::int64_t cacheBytesPerToken = 0;      ///< all layers, in the checkpoint's dtype
    std::string dtype;
    std::string cacheDtype; ///< fp32 | bf16 | fp16 | fp8: what a cache in that dtype is kept in
    std::optional<std::string> converter; ///< of a draft
    std::optional<int> kvLoraRank, qkRopeHeadDim;
    ModelConfig config; ///< for core/convert/conversion_limits.h
    std::vector<ConfigProperty> properties;
    std::vector<TensorSummary> tensors;
    /// What to know before a run: stray files, heads tied or not, QK-norm, no tokenizer, ...
    std::vector<std::string> warnings;
};
/// Reads headers only: no tensor's values, whatever the model's size.
Result<InspectReport> inspectModel(const std::filesystem::path& model);

/// Statistics of the tensors named (none = all, in the order of their names), one after another;
/// `onResult` gets each as soon as it is there. Names are checked before anything is read.
Status measureTensors(JobContext& job, const std::filesystem::path& model,
                      const std::vector<std::string>& names,
                      const std::function<void(const TensorStatistics&)>& onResult);

struct ForwardResult {
    std::vector<int> argmax; ///< [T]
};
/// Logits of one sequence; with `out` a safetensors file with one fp32 tensor `logits` [T, vocab].
Result<ForwardResult> forwardModel(const std::filesystem::path& model, const std::vector<int>& ids,
                                   const std::optional<std::filesystem::path>& out, bool overwrite,
                                   const ComputeSettings& compute);

struct GenerateRequest {
    std::filesystem::path model;
    std::vector<int> ids;
    int newTokens = 64;
    int minNewTokens = 0;
    double temperature = 0;
    ComputeSettings compute;
};
/// New ids only; stops after any eos id, which is included.
Result<std::vector<int>> generateTokens(JobContext& job, const GenerateRequest& request);

struct PerplexityResult {
    double perplexity = 0;
    std::int64_t tokens = 0; ///< scored tokens
};
/// The text is encoded once, cut into disjoint windows of `length`, the last kept if it has two
/// tokens; every window is scored from its second token.
Result<PerplexityResult> measurePerplexity(JobContext& job, const std::filesystem::path& model,
                                           const std::filesystem::path& text, int length,
                                           bool specialTokens, const ComputeSettings& compute);

/// Spectra of W_kv and of calibration activations per layer (no conversion made).
Result<std::vector<LayerRecord>> measureSpectrum(JobContext& job,
                                                 const std::filesystem::path& checkpoint,
                                                 const CalibrationSettings& calibration,
                                                 const ComputeSettings& compute);

struct FidelityReport {
    std::vector<LayerRecord> layers; ///< `after` is set
    double meanRelativeError = 0;
};
/// `calibration` null: the held-out sequences of the calibration recorded in the draft.
Result<FidelityReport> measureFidelity(JobContext& job, const std::filesystem::path& draft,
                                       const std::filesystem::path& original,
                                       const std::optional<CalibrationSettings>& calibration,
                                       const ComputeSettings& compute);

// ---- making drafts ---------------------------------------------------------------------------

struct RunOutcome {
    std::filesystem::path output; ///< the draft directory
    RunRecord run;                ///< as stored in the study, when there is one
};

struct ConvertRequest {
    std::filesystem::path checkpoint, output;
    ConvertSettings settings;
    CalibrationSettings calibration;
    ComputeSettings compute;
    std::optional<std::filesystem::path> study;
    bool overwrite = false, resume = false;
};
Result<RunOutcome> convertCheckpoint(JobContext& job, const ConvertRequest& request);

struct RefineRequest {
    std::filesystem::path draft, original, output;
    RefineSettings settings;
    std::optional<CalibrationSettings> calibration; ///< null: the one recorded in the draft
    ComputeSettings compute;
    std::optional<std::filesystem::path> study;
    bool overwrite = false, resume = false;
    /// huggingface | deepseek: every block first gets a latent norm and a constant channel and is
    /// trained through them, so that `export --layout deepseek` then changes nothing.
    std::string layout = "huggingface"; ///< core/export/export_layouts.h
};
Result<RunOutcome> refineDraft(JobContext& job, const RefineRequest& request);

// ---- measuring drafts ------------------------------------------------------------------------

struct AcceptRow {
    std::string task;
    AcceptanceMetrics metrics;
    std::int64_t tokens = 0;
    std::optional<double> tokensPerSecond; ///< mean of `speeds`
    std::vector<double> speeds;            ///< of each timed run over all prompts
    std::vector<double> baselineSpeeds;    ///< of plain decoding by the target
    std::optional<double> speedup;         ///< mean of the one over mean of the other
    /// Shares of the time that go into the draft and into verification, the rest is overhead.
    std::optional<double> draftShare, verifyShare;
    bool expected = false;             ///< counts are expectations: a replay of sampling
    std::vector<DraftLength> byLength; ///< replay with a sweep: k = 1, 2, ..
    std::optional<bool> identicalToGreedy;
    /// First position where engine output left the target's own greedy output, with its top-2
    /// margin.
    struct Divergence {
        int prompt = 0, position = 0;
        double margin = 0;
    };
    std::vector<Divergence> divergences;
    int nearTies = 0; ///< replayed positions whose top-2 margin is below 1e-3
};
struct AcceptOutcome {
    std::vector<AcceptRow> rows;
    AcceptRow pooled; ///< task "pooled"
    std::vector<std::string> warnings;
};
struct AcceptRequest {
    std::filesystem::path target, draft;
    AcceptSettings settings;
    ComputeSettings compute;
    std::optional<std::filesystem::path> study;
};
Result<AcceptOutcome> measureAcceptance(JobContext& job, const AcceptRequest& request);

// ---- whole studies ---------------------------------------------------------------------------

struct SummaryRow {
    std::string converter, variant; ///< converter "none" for the original
    double meanRelativeError = 0, perplexity = 0, acceptanceRate = 0, meanAcceptanceLength = 0;
    double cacheElementsPerTokenPerLayer = 0;
};
struct StudyOutcome {
    std::vector<SummaryRow> rows;
    std::map<std::string, double> functionalGainPp; ///< by converter: functional - partial-rope
};
/// convert, refine per objective, accept: every result goes into plan.study. With plan.resume
/// finished runs of equal settings are kept and unfinished ones continued.
Result<StudyOutcome> runStudy(JobContext& job, const StudyPlan& plan);

/// The plan of `mla-draft demo`: the embedded checkpoint, both converters, 100 steps.
/// `resources`: folder that holds demo/ and prompts/.
StudyPlan demoPlan(const std::filesystem::path& resources, const std::filesystem::path& output);

inline constexpr std::int64_t defaultShardBytes = 5'000'000'000;

/// Writes the draft to `output`, optionally in another dtype.
struct ExportRequest {
    std::filesystem::path draft, output;
    std::string layout = "huggingface"; ///< one of exportLayoutNames()
    std::optional<std::string> dtype;   ///< fp32 | fp16 | bf16
    bool verify = false;                ///< reload and compare logits with the source draft
    bool overwrite = false;
    ComputeSettings compute;
    /// The export is recorded there, and its figures stand in the model card.
    std::optional<std::filesystem::path> study;
    std::int64_t maxShardBytes = defaultShardBytes; ///< of one file of weights
};
/// What a layout that cannot hold every draft made of this one, measured on the held-out sequences.
struct LayoutLoss {
    double kl = 0;        ///< mean KL(draft || exported) of next-token distributions, nats a token
    double agreement = 0; ///< share of tokens with the same first choice
    double draftPerplexity = 0, exportedPerplexity = 0;
    bool exact = false; ///< only rewritten: what differs is rounding
    /// Acceptance rates, 0 to 1, by the draft's original: greedy, k = `draftLength`, replayed over
    /// the same texts, which continue beginnings of the held-out sequences.
    struct Acceptance {
        double draft = 0, exported = 0;
        int prompts = 0, tokens = 0, draftLength = 0;
    };
    std::optional<Acceptance> acceptance; ///< none where the original is not at hand
};
/// "on held-out sequences: KL .., same first choice .., perplexity .., acceptance ..".
std::string layoutLossText(const LayoutLoss& loss);
struct ExportOutcome {
    std::filesystem::path output;
    ExportRecord record; ///< what the layout keeps and loses, and the checks of a verification
    std::optional<double> maxLogitDifference; ///< over the spread of the logits, when verified
    std::vector<std::string> warnings;
    std::optional<LayoutLoss> loss; ///< of the deepseek layout
};
/// What `request.layout` keeps and loses of the draft, or why it cannot hold it: nothing is
/// written.
Result<LayoutDescription> describeExport(const std::filesystem::path& draft,
                                         const std::string& layout);
Result<ExportOutcome> exportDraft(JobContext& job, const ExportRequest& request);

/// Peak resident memory of this process so far, bytes (VmHWM).
std::int64_t peakRssBytes();

} // namespace mla
