// SPDX-License-Identifier: GPL-3.0-or-later
// Names, units and version of the study file: the only place that spells them.
//
// Ids become HDF5 names by percent-encoding ('/' is written %2F, see safeName), so that
// "transmla-76+32-f4/functional" is one group: /runs/transmla-76+32-f4%2Ffunctional.
// Groups named by id carry the attribute `order`, the position of their record in the study.
// Within a group, a text that is empty is stored all the same; an optional value that is absent is
// not.
#pragma once

#include <string>
#include <string_view>

#include "core/base/indices.h"
#include "core/base/result.h"

namespace mla::schema
{

inline constexpr auto studyFormat = "mla-draft-study";
inline constexpr auto layerFormat = "mla-draft-layer"; ///< a part: one layer group as root
inline constexpr int majorVersion = 1;                 ///< readers refuse a higher one
inline constexpr int minorVersion = 4;                 ///< additions that older readers may ignore

// Attributes of the root.
inline constexpr auto format = "format";
inline constexpr auto version = "version"; ///< text "MAJOR.MINOR"
inline constexpr auto created = "created";
inline constexpr auto software = "software";
inline constexpr auto layout = "layout"; ///< dataset: the table of paths and units, for people

inline constexpr auto order = "order";
inline constexpr auto checkpoints = "checkpoints";
inline constexpr auto calibration = "calibration"; ///< group; also a run's attribute
inline constexpr auto runs = "runs";
inline constexpr auto acceptance = "acceptance";
inline constexpr auto continuations = "continuations";
inline constexpr auto chatPrompts = "chat_prompts"; ///< since 1.1
inline constexpr auto tokenTexts = "token_texts";   ///< since 1.2
inline constexpr auto exports = "exports";          ///< since 1.3

// /checkpoints/<id>
inline constexpr auto config = "config";
inline constexpr auto path = "path";
inline constexpr auto fingerprint = "fingerprint";

// /calibration/<id>
inline constexpr auto inputIds = "input_ids";
inline constexpr auto mask = "mask";
inline constexpr auto source = "source";

// /runs/<id>, attributes but for the last three
inline constexpr auto variant = "variant";
inline constexpr auto converter = "converter";
inline constexpr auto checkpoint = "checkpoint";
inline constexpr auto parent = "parent";
inline constexpr auto settings = "settings"; ///< JSON
inline constexpr auto draftPath = "draft_path";
inline constexpr auto device = "device";
inline constexpr auto seed = "seed";
inline constexpr auto kvLoraRank = "kv_lora_rank";
inline constexpr auto qkRopeHeadDim = "qk_rope_head_dim";
inline constexpr auto cacheElements = "cache_elements";
inline constexpr auto originalCacheElements = "original_cache_elements";
inline constexpr auto seconds = "seconds"; ///< also a layer's dataset
inline constexpr auto peakRssBytes = "peak_rss_bytes";
inline constexpr auto warnings = "warnings";
inline constexpr auto layers = "layers";
inline constexpr auto stages = "stages";

// /runs/<id>/layers/NNN
inline constexpr auto layer = "layer"; ///< attribute
inline constexpr auto loss = "loss";
inline constexpr auto step = "step";
inline constexpr auto train = "train";
inline constexpr auto heldout = "heldout";
inline constexpr auto learningRate = "lr";
inline constexpr auto lossBefore = "loss_before"; ///< attribute
inline constexpr auto lossAfter = "loss_after";   ///< attribute
inline constexpr auto spectrum = "spectrum";
inline constexpr auto weights = "weights";
inline constexpr auto activations = "activations";
inline constexpr auto rank = "rank";                      ///< attribute
inline constexpr auto retainedEnergy = "retained_energy"; ///< attribute
inline constexpr auto effectiveRank = "effective_rank";   ///< attribute
inline constexpr auto tailBound = "tail_bound";           ///< attribute
inline constexpr auto rope = "rope";
inline constexpr auto heads = "heads"; ///< attribute
inline constexpr auto pairs = "pairs"; ///< attribute
inline constexpr auto keyEnergy = "key_energy";
inline constexpr auto keptEnergy = "kept_energy";
inline constexpr auto scoreEnergy = "score_energy";
inline constexpr auto distance = "distance";
inline constexpr auto scoreResidual = "score_residual";
inline constexpr auto fidelity = "fidelity"; ///< attribute `columns` names the three numbers
inline constexpr auto columns = "columns";
inline constexpr auto fidelityColumns = "relative_error,cosine,attention_kl";
inline constexpr auto before = "before";
inline constexpr auto after = "after";
// since 1.4, absent where they do not apply
inline constexpr auto ropeOnly = "rope_only";
inline constexpr auto rankOnly = "rank_only";
inline constexpr auto both = "both";
inline constexpr auto refined = "refined";
inline constexpr auto complete = "complete";
inline constexpr auto keptConverted = "kept_converted"; ///< attribute

// /runs/<id>/stages/<name>
inline constexpr auto perplexity = "perplexity";
inline constexpr auto kl = "kl";

// /runs/<id>/{error_sources, positions, attention_maps}, since 1.4
inline constexpr auto errorSources = "error_sources";
inline constexpr auto measuredOn = "measured_on";
inline constexpr auto noConversion = "no_conversion";
inline constexpr auto noRefinement = "no_refinement";
inline constexpr auto positions = "positions";
inline constexpr auto first = "first";
inline constexpr auto last = "last";
inline constexpr auto originalPerplexity = "original_perplexity";
inline constexpr auto attentionMaps = "attention_maps";
inline constexpr auto head = "head"; ///< attribute
inline constexpr auto original = "original";
inline constexpr auto draft = "draft";

// /acceptance/<row>, attributes but for the raw counts
inline constexpr auto target = "target";
inline constexpr auto run = "run";
inline constexpr auto task = "task";
inline constexpr auto backend = "backend";
inline constexpr auto method = "method";
inline constexpr auto k = "k";
inline constexpr auto temperature = "temperature";
inline constexpr auto tokens = "tokens";
inline constexpr auto wallTime = "wall_time";
inline constexpr auto tokensPerSecond = "tokens_per_second";
inline constexpr auto identicalToGreedy = "identical_to_greedy";
inline constexpr auto plainSteps = "plain_steps";
inline constexpr auto chatTemplate = "chat_template"; ///< attribute, since 1.1
inline constexpr auto prompt = "prompt";
inline constexpr auto drafted = "drafted";
inline constexpr auto accepted = "accepted";
// since 1.2, absent where they do not apply
inline constexpr auto topK = "top_k";
inline constexpr auto topP = "top_p";
inline constexpr auto weight = "weight";
inline constexpr auto speeds = "speeds";
inline constexpr auto baselineSpeeds = "baseline_speeds";
inline constexpr auto draftSeconds = "draft_seconds";
inline constexpr auto verifySeconds = "verify_seconds";
inline constexpr auto draftCost = "draft_cost";
inline constexpr auto verifyCosts = "verify_costs";
inline constexpr auto continuation = "continuation";
inline constexpr auto acceptProbability = "accept_probability";
inline constexpr auto topIds = "top_ids"; ///< also of /continuations/<id>
inline constexpr auto topProbabilities = "top_probabilities";

// /continuations/<id>
inline constexpr auto offsets = "offsets";
inline constexpr auto ids = "ids";
inline constexpr auto margins = "margins";
inline constexpr auto drawn = "drawn"; ///< since 1.2, sampled texts only

// /chat_prompts/<id>: offsets and ids as above
inline constexpr auto prompts = "prompts";

// /exports/<id>: run, created and software as above, attributes but for the lists
inline constexpr auto exportLayout = "layout";
inline constexpr auto dtype = "dtype";
inline constexpr auto weightBytes = "weight_bytes";
inline constexpr auto keeps = "keeps";
inline constexpr auto loses = "loses";
inline constexpr auto checks = "checks";
// /exports/<id>/checks/<stack>
inline constexpr auto modelClass = "model_class";
inline constexpr auto reference = "reference";
inline constexpr auto logitDifference = "logit_difference";
inline constexpr auto bound = "bound";
inline constexpr auto greedyTokens = "greedy_tokens";
inline constexpr auto equalTokens = "equal_tokens";
inline constexpr auto passed = "passed";
inline constexpr auto remark = "remark";

// /token_texts/<id>: ids as above
inline constexpr auto texts = "texts";

/// An id as one HDF5 name or file name: letters, digits, "-_+.=, " and bytes above 127 stay, all
/// else becomes %XX; a leading '.' too. Reversible.
[[nodiscard]] std::string safeName(std::string_view id);
/// The inverse. Text that safeName does not produce is decoded as far as it goes.
[[nodiscard]] std::string idOf(std::string_view name);
/// "007": at least three digits.
[[nodiscard]] std::string layerName(LayerIndex layer);

[[nodiscard]] std::string versionText();
/// BadInput if `text` is no version or of a higher major version.
Status checkVersion(const std::string& text);

/// Every path with its unit and meaning, as stored in /layout.
[[nodiscard]] std::string_view layoutTable();

} // namespace mla::schema
