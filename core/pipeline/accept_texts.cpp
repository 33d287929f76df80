// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_texts.h"

#include <atomic>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/sha256.h"
#include "core/model/tensors.h"
#include "core/pipeline/continuation_record.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{

namespace
{

namespace fs = std::filesystem;

std::string textId(const TextRequest& what)
{
    const AcceptSettings& settings = what.request.settings;
    std::string key = what.pair.targetFingerprint + "|" + std::to_string(settings.maxNewTokens) +
                      "|" + std::to_string(settings.minNewTokens);
    if (const SamplingRule rule = settings.rule(); !rule.greedy())
        key += "|" + nlohmann::json{rule.temperature, rule.topK, rule.topP,
                                    what.request.compute.seed, what.firstPrompt}
                         .dump();
    if (const SharedTokens& shared = what.pair.shared; !shared.whole) {
        key += "|of " + std::to_string(shared.size);
        for (const int hole : shared.holes)
            key += "-" + std::to_string(hole);
    }
    for (const std::vector<int>& prompt : what.task.prompts) {
        key += "|";
        for (const int id : prompt)
            key += std::to_string(id) + ",";
    }
    return sha256Hex(key).substr(0, 24);
}

Result<std::vector<Continuation>> generate(JobContext& job, const TextRequest& what,
                                           const Decoder& target)
{
    const AcceptSettings& settings = what.request.settings;
    const int count = static_cast<int>(what.task.prompts.size());
    std::vector<Continuation> all(what.task.prompts.size());
    std::atomic<int> done = 0;
    job.emitEvent(StageStarted{"continue", count, "prompts", {}});
    MLA_CHECK(parallelFor(job, count, what.workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        torch::Generator generator =
            seededGenerator(what.request.compute.seed, acceptanceStream,
                            static_cast<std::uint64_t>(what.firstPrompt + index));
        MLA_TRY(text, continuePrompt(job, target, what.task.prompts[i], settings.maxNewTokens,
                                     what.stop, settings.rule(), &generator));
        all[i] = std::move(text);
        job.emitEvent(StageProgress{"continue", static_cast<double>(++done), count});
        return {};
    }));
    return all;
}

} // namespace

Result<TargetTexts> targetTexts(JobContext& job, const TextRequest& what, const Decoder& target)
{
    TargetTexts texts{textId(what), {}};
    const std::optional<fs::path>& path = what.request.study;
    if (path && fs::exists(*path)) {
        MLA_TRY(study, loadStudy(*path));
        for (const ContinuationRecord& record : study.continuations)
            if (record.id == texts.id) {
                texts.texts = fromRecord(record);
                return texts;
            }
    }
    MLA_TRY(all, generate(job, what, target));
    texts.texts = std::move(all);
    if (!path)
        return texts;
    ContinuationRecord record = toRecord(texts.texts);
    record.id = texts.id;
    record.target = checkpointId(what.request.target);
    record.task = what.task.name;
    std::vector<std::int32_t> ids = record.ids;
    ids.insert(ids.end(), record.choices.ids.begin(), record.choices.ids.end());
    TokenTextRecord words = tokenTexts(what.pair, record.target, ids);
    MLA_CHECK(updateStudy(*path, [&](StudyData& study) -> Status {
        study.put(std::move(record));
        study.put(std::move(words));
        return {};
    }));
    return texts;
}

std::optional<std::string> tokenText(const Tokenizer& tokenizer, int id)
{
    const Result<std::string> once = tokenizer.decode({id}), twice = tokenizer.decode({id, id});
    if (!once.ok() || !twice.ok())
        return std::nullopt;
    const std::string text = twice->starts_with(*once) ? twice->substr(once->size()) : *once;
    constexpr std::string_view partOfACharacter = "\xEF\xBF\xBD";
    return text == partOfACharacter ? tokenizer.tokenOf(id) : text;
}

TokenTextRecord tokenTexts(const AcceptPair& pair, const std::string& checkpoint,
                           const std::vector<std::int32_t>& ids)
{
    TokenTextRecord record{checkpoint, {}, {}};
    for (const std::int32_t id : std::set<std::int32_t>(ids.begin(), ids.end())) {
        std::optional<std::string> text = id < 0 ? std::nullopt : tokenText(pair.tokenizer, id);
        if (!text)
            continue;
        record.ids.push_back(id);
        record.texts.push_back(std::move(*text));
    }
    return record;
}

} // namespace mla
