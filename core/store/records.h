// SPDX-License-Identifier: GPL-3.0-or-later
// What a study holds, as plain values (design: one struct per HDF5 group). No HDF5, no torch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/indices.h"

namespace mla
{

struct CheckpointRecord {
    std::string id; ///< short name, unique in the study ("SmolLM2-135M")
    std::string path;
    std::string fingerprint; ///< Checkpoint::fingerprint
    std::string configJson;
};

struct CalibrationRecord {
    std::string id;
    std::string source;                 ///< "self", or the files it came from
    int sequences = 0, length = 0;      ///< N, T
    std::vector<std::int32_t> inputIds; ///< [N, T]
    std::vector<std::uint8_t> mask;     ///< [N, T], 1 = valid token
};

/// Loss of one layer against optimizer steps. All vectors have one entry per recorded step.
struct LossCurve {
    std::vector<int> step;       ///< 0 = before training
    std::vector<double> train;   ///< NaN at step 0
    std::vector<double> heldout; ///< NaN where it was not evaluated
    std::vector<double> learningRate;
};

/// Singular values, descending.
struct SpectrumRecord {
    std::vector<double> weights;     ///< of stacked [W_k; W_v]
    std::vector<double> activations; ///< of [K_nope / rho, V] (TransMLA) or of the whitened stack
    int rank = 0;                    ///< r of the run
    double retainedEnergy = 0; ///< sum of the leading r squared / sum of all, of `activations`
    double effectiveRank = 0;  ///< exp(entropy of normalised squared singular values)
    double tailBound = 0;      ///< sqrt of the energy beyond r, relative: lower bound of the error
};

struct RopeRecord {
    int heads = 0, pairs = 0;        ///< G, h/2 (source head basis, source frequency pairs)
    std::vector<double> keyEnergy;   ///< [heads, pairs] share of the layer's key energy, sums to 1
    std::vector<double> keptEnergy;  ///< [heads, pairs] part of it that stays rotary, <= keyEnergy
    std::vector<double> scoreEnergy; ///< [heads, pairs] share of the q.k 2-norm score, sums to 1
    std::vector<double> distance;    ///< centres of log-spaced bins of |i - j|, tokens
    std::vector<double> scoreResidual; ///< mean |change of attention logit| per bin, full rank
};

struct FidelityRecord {
    double relativeError = 0; ///< sqrt(sum|dA|^2 / sum|A|^2) over held-out tokens
    double cosine = 0;        ///< mean over tokens
    double attentionKl = 0;   ///< KL(original || draft), nats, mean over heads and queries
};

/// Where a layer's functional error comes from (design section 5): the block with one part of the
/// conversion at a time, on the same states. What cannot be formed is absent.
struct ErrorSourcesRecord {
    std::optional<FidelityRecord> ropeOnly; ///< the draft's rotary handling at full rank
    std::optional<FidelityRecord> rankOnly; ///< its low-rank keys and values, every pair rotary
    std::optional<FidelityRecord> both;     ///< the converted block
    std::optional<FidelityRecord> refined;  ///< the block after refinement
    [[nodiscard]] bool any() const { return ropeOnly || rankOnly || both || refined; }
};

struct LayerRecord {
    LayerIndex layer;
    std::optional<LossCurve> loss;
    std::optional<SpectrumRecord> spectrum;
    std::optional<RopeRecord> rope;
    std::optional<FidelityRecord> before,
        after;                  ///< around refinement; a conversion has `after` only
    ErrorSourcesRecord sources; ///< of `fidelity --error-sources`
    std::optional<double> lossBefore, lossAfter; ///< held-out loss of the run's objective
    double seconds = 0;
    bool keptConverted = false; ///< refinement did not help; converted weights stay
    bool complete = false;
};

struct StageRecord {
    double perplexity = 0;
    double kl = 0; ///< mean KL(original || stage) of next-token distributions, nats
};

/// What ErrorSourcesRecord of a run's layers was measured on, and why parts of it are absent.
struct ErrorSourcesNote {
    std::string measuredOn;   ///< source of the calibration sequences
    std::string noConversion; ///< why ropeOnly, rankOnly or both are absent; empty = they are there
    std::string noRefinement; ///< why refined is absent; empty = it is there
};

/// How original and draft predict from the positions first .. last of a text.
struct PositionBucket {
    int first = 0, last = 0; ///< of the token that predicts the next one, 0-based, inclusive
    std::int64_t tokens = 0; ///< predictions
    double originalPerplexity = 0, perplexity = 0; ///< exp(mean negative log-likelihood)
    double kl = 0; ///< mean KL(original || draft) of next-token distributions, nats
};
struct PositionScores {
    std::string source;                  ///< the text, or the source of the calibration sequences
    std::vector<PositionBucket> buckets; ///< ascending; those that the text reaches
};

/// Attention probabilities of one head on a prompt, of the original's block and of the draft's on
/// the original's states.
struct AttentionMapRecord {
    LayerIndex layer;
    HeadIndex head; ///< a query head
    std::string prompt;
    std::vector<std::string> tokens;                      ///< [T] texts
    std::vector<double> original, draft;                  ///< [T, T], row = query, column = key
    [[nodiscard]] std::vector<double> difference() const; ///< [T, T] draft - original
};

/// One draft: a conversion or a refinement.
struct RunRecord {
    std::string id;                        ///< "transmla-76+32-f4/functional"; unique in the study
    std::string variant;                   ///< original | converted | partial-rope | functional
    std::string converter;                 ///< transmla | mha2mla
    std::string checkpoint;                ///< CheckpointRecord::id of the source
    std::string parent;                    ///< run id this one refines; empty for a conversion
    std::string calibration;               ///< CalibrationRecord::id
    std::string settingsJson;              ///< every setting of the stage
    std::string draftPath;                 ///< directory of the draft, absolute
    std::string device, software, created; ///< created: ISO 8601 UTC
    std::uint64_t seed = 0;
    int kvLoraRank = 0, qkRopeHeadDim = 0;
    std::int64_t cacheElements = 0, originalCacheElements = 0; ///< per token and layer
    double seconds = 0;
    std::int64_t peakRssBytes = 0;
    std::vector<std::string> warnings;
    std::vector<LayerRecord> layers;
    std::map<std::string, StageRecord> stages; ///< original, rope_removed, low_rank, refined
    // Of `fidelity`, on demand.
    std::optional<ErrorSourcesNote> errorSources; ///< set when layers have `sources`
    std::optional<PositionScores> positions;
    std::vector<AttentionMapRecord> attentionMaps;

    /// Inserts, or replaces the map of the same layer, head and prompt.
    void put(AttentionMapRecord map);
    [[nodiscard]] std::optional<double> meanRelativeError() const; ///< of layers' `after`
};

/// The likeliest next tokens at each position of a text, best first.
struct TokenChoices {
    static constexpr int perToken = 3;
    std::vector<std::int32_t> ids;     ///< [tokens, perToken]; -1 where there are fewer
    std::vector<double> probabilities; ///< [tokens, perToken], of the model's own distribution
    [[nodiscard]] bool empty() const { return ids.empty(); }
};

/// What one pass of either model costs beside the other, seconds: medians over a few passes.
struct StepCosts {
    double draft = 0;           ///< the draft, one token
    std::vector<double> verify; ///< [m] the target, m + 1 tokens at once; [0] is plain decoding
    [[nodiscard]] bool measured() const { return draft > 0 && !verify.empty(); }
};

/// One acceptance measurement: a (target, draft, task, method, k) row with raw per-step counts.
struct AcceptanceRecord {
    std::string id;
    std::string target; ///< CheckpointRecord::id
    std::string run;    ///< RunRecord::id, or "original"
    std::string task;
    std::string backend = "native";
    std::string method; ///< replay | speculative
    int k = 0;
    double temperature = 0;
    int topK = 0;              ///< of sampling; 0 = all
    double topP = 1;           ///< of sampling
    bool chatTemplate = false; ///< prompts were rendered by the target's chat template
    std::uint64_t seed = 0;
    std::int64_t tokens = 0; ///< generated tokens, EOS included, over all prompts
    double wallTime = 0;     ///< seconds
    std::string settingsJson;
    std::optional<double> tokensPerSecond; ///< null for replay
    std::optional<bool> identicalToGreedy; ///< null for replay
    std::vector<std::int32_t> prompt;      ///< per step: which prompt, 0-based
    std::vector<std::int32_t> drafted; ///< per step: drafted tokens (> 0; plain steps are not here)
    std::vector<std::int32_t> accepted; ///< per step: accepted prefix
    /// Per step: how many such steps there are. Empty = one each. A replay of sampling has expected
    /// steps: each possible one with its probability.
    std::vector<double> weight;
    double plainSteps = 0; ///< steps with nothing to draft

    std::vector<double> speeds;         ///< tokens/s of each timed run over all prompts
    std::vector<double> baselineSpeeds; ///< of plain decoding by the target alone
    std::optional<double> draftSeconds, verifySeconds; ///< within wallTime; native engine only
    StepCosts costs;                                   ///< replay with a sweep over k only

    // Of a replay: the text, and what the draft would have said at each of its positions.
    std::string continuation;              ///< ContinuationRecord::id; empty for other methods
    TokenChoices choices;                  ///< the draft's
    std::vector<double> acceptProbability; ///< [tokens], sampling only: min(1, q(x) / p(x))
};

/// The target's own continuations of one task's prompts, greedy or sampled, generated once and
/// replayed for every draft. The id is made of everything that decides the text.
struct ContinuationRecord {
    std::string id;     ///< hash of target fingerprint, prompt ids and settings
    std::string target; ///< CheckpointRecord::id
    std::string task;
    std::vector<std::int32_t> offsets; ///< [prompts + 1] into `ids`
    std::vector<std::int32_t> ids;     ///< concatenated continuations, EOS included
    std::vector<double> margins;       ///< top-2 margin of the logits behind each id
    std::vector<double> drawn;         ///< sampled texts: probability that each id was drawn with
    TokenChoices choices;              ///< the target's; empty in older studies
};

/// Texts of the tokens that continuations and choices speak of.
struct TokenTextRecord {
    std::string id;                ///< CheckpointRecord::id of the target
    std::vector<std::int32_t> ids; ///< ascending
    std::vector<std::string> texts;
    [[nodiscard]] const std::string* find(std::int32_t token) const; ///< null if it is not here
};

/// Prompts rendered once by a chat template, which may write the date: reused, never rendered
/// twice.
struct ChatPromptRecord {
    std::string id;                    ///< chatFingerprint: hash of tokenizer and template
    std::string checkpoint;            ///< CheckpointRecord::id of the model they belong to
    std::string software;              ///< "transformers 5.19.0"
    std::vector<std::string> prompts;  ///< SHA-256 of each prompt's text
    std::vector<std::int32_t> offsets; ///< [prompts + 1] into `ids`
    std::vector<std::int32_t> ids;     ///< concatenated token ids
};

/// What one program computes of an exported draft, beside what is expected.
struct ExportCheckRecord {
    std::string stack;          ///< mla-draft | transformers | vllm
    std::string software;       ///< "transformers 5.19.0, torch 2.13.0"
    std::string modelClass;     ///< what the stack made of the directory; empty for mla-draft
    std::string reference;      ///< what it is compared with: "the draft" | "the exported weights"
    double logitDifference = 0; ///< largest |difference|, over the spread of the reference's logits
    double bound = 0;           ///< of logitDifference
    int prompts = 0;
    int greedyTokens = 0, equalTokens = 0; ///< generated over all prompts; up to a first difference
    bool passed = false;
    std::string remark; ///< why the stack was not tried, or where it differs
    [[nodiscard]] bool tried() const { return prompts > 0; }
};

/// One directory that `export` wrote.
struct ExportRecord {
    std::string id;                ///< "<run>/<layout>-<dtype>"
    std::string run;               ///< RunRecord::id of the draft
    std::string layout, dtype;     ///< dtype: fp32 | fp16 | bf16, or "as in the draft"
    std::string path;              ///< directory, absolute
    std::string created, software; ///< created: ISO 8601 UTC
    std::int64_t weightBytes = 0;
    std::vector<std::string> keeps, loses; ///< of the layout, for people
    std::vector<ExportCheckRecord> checks; ///< empty when it was not verified
};

struct StudyData {
    std::string created, software;
    std::vector<CheckpointRecord> checkpoints;
    std::vector<CalibrationRecord> calibrations;
    std::vector<RunRecord> runs;
    std::vector<AcceptanceRecord> acceptance;
    std::vector<ContinuationRecord> continuations;
    std::vector<ChatPromptRecord> chatPrompts;
    std::vector<TokenTextRecord> tokenTexts;
    std::vector<ExportRecord> exports;

    [[nodiscard]] const RunRecord* findRun(const std::string& id) const;
    /// Inserts, or replaces the record of the same id.
    void put(CheckpointRecord record);
    void put(CalibrationRecord record);
    void put(RunRecord record);
    void put(AcceptanceRecord record);
    void put(ContinuationRecord record);
    void put(ChatPromptRecord record);
    void put(ExportRecord record);
    void put(TokenTextRecord record); ///< adds to the texts that are there
};

} // namespace mla
