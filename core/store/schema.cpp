// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/schema.h"

#include <charconv>

namespace mla::schema
{

namespace
{

constexpr std::string_view hexDigits = "0123456789ABCDEF";

bool staysAsIs(unsigned char c)
{
    const bool letterOrDigit =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letterOrDigit || c > 127 ||
           std::string_view("-_+.=, ").find(static_cast<char>(c)) != std::string_view::npos;
}

} // namespace

std::string safeName(std::string_view id)
{
    std::string name;
    for (std::size_t i = 0; i < id.size(); ++i) {
        const auto c = static_cast<unsigned char>(id[i]);
        if (staysAsIs(c) && !(c == '.' && i == 0))
            name += id[i];
        else
            (name += '%').append({hexDigits[c >> 4], hexDigits[c & 15]});
    }
    return name;
}

std::string idOf(std::string_view name)
{
    std::string id;
    for (std::size_t i = 0; i < name.size(); ++i) {
        unsigned value = 0;
        const char* digits = name.data() + i + 1;
        if (name[i] == '%' && i + 2 < name.size() &&
            std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
            id += static_cast<char>(value);
            i += 2;
        } else {
            id += name[i];
        }
    }
    return id;
}

std::string layerName(LayerIndex layer)
{
    const std::string digits = std::to_string(layer.value);
    return digits.size() < 3 ? std::string(3 - digits.size(), '0') + digits : digits;
}

std::string versionText()
{
    return std::to_string(majorVersion) + "." + std::to_string(minorVersion);
}

Status checkVersion(const std::string& text)
{
    int major = -1;
    const char* end = text.data() + text.size();
    const auto [next, code] = std::from_chars(text.data(), end, major);
    if (code != std::errc() || major < 0 || (next != end && *next != '.'))
        return badInput("layout version '" + text + "' is not of the form MAJOR.MINOR");
    if (major > majorVersion)
        return badInput("layout version " + text + " is newer than " + versionText() +
                            ", the newest this program reads",
                        {}, "update the program");
    return {};
}

std::string_view layoutTable()
{
    return R"(path | unit | meaning
/ @format, @version, @created, @software | ISO 8601 UTC | what wrote this file, and when
names of groups under /checkpoints, /calibration, /runs, /acceptance, /continuations, /chat_prompts, /token_texts, /exports | | the id, percent-encoded (%2F is '/'); @order is its position
/checkpoints/<id>/config | JSON | config.json of the checkpoint
/checkpoints/<id>/path, fingerprint | | where it stood; hash of its content
/calibration/<id>/input_ids [N,T] | token id | calibration sequences
/calibration/<id>/mask [N,T] | 0 or 1 | 1 = valid token
/calibration/<id>/source | | "self", or the files
/runs/<id> @variant, @converter, @checkpoint, @parent, @calibration | | original, converted, partial-rope or functional; ids of what it came from
/runs/<id> @kv_lora_rank, @qk_rope_head_dim | elements | latent and rotary width
/runs/<id> @cache_elements, @original_cache_elements | elements per token and layer | KV cache of the draft, of the original
/runs/<id> @seconds, @peak_rss_bytes | s, bytes | cost of the run
/runs/<id> @settings | JSON | every setting (a dataset if longer than 60,000 bytes)
/runs/<id>/warnings [n] | | texts
/runs/<id>/layers/NNN/loss/step [s] | optimizer step | 0 = before training
/runs/<id>/layers/NNN/loss/train, heldout [s] | loss of the objective | NaN where not evaluated
/runs/<id>/layers/NNN/loss/lr [s] | 1 | learning rate
/runs/<id>/layers/NNN @loss_before, @loss_after | loss of the objective | held-out
/runs/<id>/layers/NNN @kept_converted | 0 or 1 | 1 = refinement did not help, converted weights stay
/runs/<id>/layers/NNN/spectrum/weights [n], activations [n] | 1 | singular values, descending
/runs/<id>/layers/NNN/spectrum @rank, @retained_energy, @effective_rank, @tail_bound | 1 | of the activations at the rank of the run
/runs/<id>/layers/NNN/rope/key_energy, kept_energy, score_energy [heads,pairs] | share | of the layer's key energy, of its rotary part, of the score norm
/runs/<id>/layers/NNN/rope/distance [b] | tokens | centres of bins of |i - j|
/runs/<id>/layers/NNN/rope/score_residual [b] | logit | mean |change of attention logit|
/runs/<id>/layers/NNN/fidelity/before, after [3] | 1, 1, nats | relative error, cosine, KL of attention probabilities
/runs/<id>/layers/NNN/fidelity/rope_only, rank_only, both, refined [3] | 1, 1, nats | the same numbers with one source of error at a time
/runs/<id>/layers/NNN/seconds, complete | s, 0 or 1 |
/runs/<id>/stages/<name>/perplexity, kl | 1, nats | original, rope_removed, low_rank, refined; KL(original || stage)
/runs/<id>/error_sources @measured_on, @no_conversion, @no_refinement | | what they were measured on, and why parts are absent
/runs/<id>/positions @source | | the text that was scored
/runs/<id>/positions/first, last [b] | position | of the tokens that predict, inclusive
/runs/<id>/positions/tokens, perplexity, original_perplexity, kl [b] | tokens, 1, 1, nats | predictions in each bucket; KL(original || draft)
/runs/<id>/attention_maps/NNN @layer, @head | | a query head
/runs/<id>/attention_maps/NNN/prompt, tokens [T] | | the text, and its tokens'
/runs/<id>/attention_maps/NNN/original, draft [T,T] | probability | row = query, column = key
/acceptance/<row> @target, @run, @task, @backend, @method, @k, @temperature, @seed | | what was measured
/acceptance/<row> @tokens, @wall_time, @tokens_per_second, @plain_steps | tokens, s, 1/s, steps | over all prompts
/acceptance/<row> @identical_to_greedy | 0 or 1 | absent for replay
/acceptance/<row> @chat_template | 0 or 1 | 1 = prompts rendered by the target's chat template
/acceptance/<row> @top_k, @top_p | | of sampling
/acceptance/<row>/prompt, drafted, accepted [steps] | index, tokens, tokens | one entry per verification step
/acceptance/<row>/weight [steps] | steps | how many such steps are expected (replay of sampling); absent = one each
/acceptance/<row>/speeds, baseline_speeds [runs] | tokens/s | timed runs, and plain decoding by the target
/acceptance/<row> @draft_seconds, @verify_seconds | s | parts of @wall_time
/acceptance/<row> @draft_cost; verify_costs [m] | s | one token of the draft; m + 1 tokens at once of the target
/acceptance/<row> @continuation | | the text that was replayed
/acceptance/<row>/top_ids, top_probabilities [tokens * 3] | id, 1 | the draft's three likeliest tokens at each position of that text
/acceptance/<row>/accept_probability [tokens] | 1 | min(1, q / p) of the text's own token (sampling)
/continuations/<id> @target, @task | | the target's own continuations of a task's prompts
/continuations/<id>/drawn [tokens] | 1 | sampled texts: probability that each token was drawn with
/continuations/<id>/top_ids, top_probabilities [tokens * 3] | id, 1 | the target's three likeliest tokens
/continuations/<id>/offsets [prompts + 1] | tokens | where each continuation begins in ids
/continuations/<id>/ids, margins [tokens] | id, logits | tokens, and the top-2 margin behind each
/chat_prompts/<id> @checkpoint, @software | | prompts rendered by the chat template that hashes to <id>, and what rendered them
/chat_prompts/<id>/prompts [n] | SHA-256 | of each prompt's text
/token_texts/<id>/ids, texts [n] | id | texts of tokens of checkpoint <id>
/chat_prompts/<id>/offsets [n + 1], ids | tokens, id | where each rendered prompt begins, and its tokens
/exports/<id> @run, @layout, @dtype, @path, @created, @software, @weight_bytes | bytes | a directory that `export` wrote
/exports/<id>/keeps, loses [n] | | what the layout holds of the draft, and what it does not
/exports/<id>/checks/<stack> @software, @model_class, @reference, @remark | | a program that ran it, and what it was compared with
/exports/<id>/checks/<stack> @logit_difference, @bound | share of the spread of the logits | largest difference, and what is allowed
/exports/<id>/checks/<stack> @prompts, @greedy_tokens, @equal_tokens, @passed | | tokens generated, and those equal up to a first difference
)";
}

} // namespace mla::schema
