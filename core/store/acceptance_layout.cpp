// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance measurements and the texts they were made on.
#include <algorithm>
#include <array>

#include "core/store/schema.h"
#include "core/store/study_layout.h"

namespace mla
{

namespace
{

template <typename Row>
auto rowTexts(Row& row)
{
    return std::array{
        std::pair{schema::target, &row.target}, std::pair{schema::run, &row.run},
        std::pair{schema::task, &row.task},     std::pair{schema::backend, &row.backend},
        std::pair{schema::method, &row.method}, std::pair{schema::settings, &row.settingsJson}};
}

/// Metrics have an entry per draft position: a hostile k must not cost memory.
constexpr int longestDraft = 4096;

Error badCounts(const h5::Group& group)
{
    return badInput("'" + group.path() +
                    "': prompt, drafted, accepted and weight must have equal lengths, with "
                    "0 <= accepted <= drafted <= k <= " +
                    std::to_string(longestDraft));
}

bool countsAgree(const AcceptanceRecord& row)
{
    if (row.k < 0 || row.k > longestDraft)
        return false;
    if (row.prompt.size() != row.drafted.size() || row.prompt.size() != row.accepted.size())
        return false;
    if (!row.weight.empty() && row.weight.size() != row.drafted.size())
        return false;
    for (std::size_t i = 0; i < row.drafted.size(); ++i)
        if (row.prompt[i] < 0 || row.accepted[i] < 0 || row.accepted[i] > row.drafted[i] ||
            row.drafted[i] > row.k)
            return false;
    return true;
}

Status readRowNumbers(const h5::Group& group, AcceptanceRecord& row)
{
    MLA_TRY(k, group.attribute<std::int32_t>(schema::k));
    MLA_TRY(temperature, group.attribute<double>(schema::temperature));
    MLA_TRY(seed, group.attribute<std::uint64_t>(schema::seed));
    MLA_TRY(tokens, group.attribute<std::int64_t>(schema::tokens));
    MLA_TRY(wallTime, group.attribute<double>(schema::wallTime));
    MLA_TRY(plain, group.attribute<double>(schema::plainSteps));
    row.k = k;
    row.temperature = temperature;
    row.seed = seed;
    row.tokens = tokens;
    row.wallTime = wallTime;
    row.plainSteps = plain;
    if (group.hasAttribute(schema::chatTemplate)) {
        MLA_TRY(chat, group.attribute<std::uint8_t>(schema::chatTemplate));
        row.chatTemplate = chat != 0;
    }
    if (group.hasAttribute(schema::tokensPerSecond)) {
        MLA_TRY(speed, group.attribute<double>(schema::tokensPerSecond));
        row.tokensPerSecond = speed;
    }
    if (group.hasAttribute(schema::identicalToGreedy)) {
        MLA_TRY(identical, group.attribute<std::uint8_t>(schema::identicalToGreedy));
        row.identicalToGreedy = identical != 0;
    }
    return {};
}

template <typename T>
Status readIfThere(const h5::Group& group, const char* name, std::vector<T>& values)
{
    if (!group.has(name))
        return {};
    MLA_TRY(read, group.readVector<T>(name));
    values = std::move(read);
    return {};
}

template <typename T>
Status writeIfAny(h5::Group& group, const char* name, const std::vector<T>& values)
{
    return values.empty() ? Status{} : group.writeVector<T>(name, values);
}

Status readIfThere(const h5::Group& group, const char* name, std::optional<double>& value)
{
    if (!group.hasAttribute(name))
        return {};
    MLA_TRY(read, group.attribute<double>(name));
    value = read;
    return {};
}

Status readChoices(const h5::Group& group, TokenChoices& choices)
{
    MLA_CHECK(readIfThere(group, schema::topIds, choices.ids));
    MLA_CHECK(readIfThere(group, schema::topProbabilities, choices.probabilities));
    if (choices.ids.size() == choices.probabilities.size() &&
        choices.ids.size() % TokenChoices::perToken == 0)
        return {};
    return badInput("'" + group.path() + "': top_ids and top_probabilities must have equal " +
                    "lengths, " + std::to_string(TokenChoices::perToken) + " a token");
}

Status writeChoices(h5::Group& group, const TokenChoices& choices)
{
    MLA_CHECK(writeIfAny(group, schema::topIds, choices.ids));
    return writeIfAny(group, schema::topProbabilities, choices.probabilities);
}

/// What rows have had since 1.2.
Status readRowExtras(const h5::Group& group, AcceptanceRecord& row)
{
    if (group.hasAttribute(schema::topK)) {
        MLA_TRY(topK, group.attribute<std::int32_t>(schema::topK));
        MLA_TRY(topP, group.attribute<double>(schema::topP));
        row.topK = topK;
        row.topP = topP;
    }
    if (group.hasAttribute(schema::continuation)) {
        MLA_TRY(continuation, group.textAttribute(schema::continuation));
        row.continuation = std::move(continuation);
    }
    if (group.hasAttribute(schema::draftCost)) {
        MLA_TRY(cost, group.attribute<double>(schema::draftCost));
        row.costs.draft = cost;
    }
    MLA_CHECK(readIfThere(group, schema::draftSeconds, row.draftSeconds));
    MLA_CHECK(readIfThere(group, schema::verifySeconds, row.verifySeconds));
    MLA_CHECK(readIfThere(group, schema::weight, row.weight));
    MLA_CHECK(readIfThere(group, schema::speeds, row.speeds));
    MLA_CHECK(readIfThere(group, schema::baselineSpeeds, row.baselineSpeeds));
    MLA_CHECK(readIfThere(group, schema::verifyCosts, row.costs.verify));
    MLA_CHECK(readIfThere(group, schema::acceptProbability, row.acceptProbability));
    return readChoices(group, row.choices);
}

Status writeRowExtras(h5::Group& group, const AcceptanceRecord& row)
{
    if (row.temperature > 0) {
        MLA_CHECK(group.setAttribute<std::int32_t>(schema::topK, row.topK));
        MLA_CHECK(group.setAttribute(schema::topP, row.topP));
    }
    if (!row.continuation.empty())
        MLA_CHECK(group.setTextAttribute(schema::continuation, row.continuation));
    if (row.draftSeconds)
        MLA_CHECK(group.setAttribute(schema::draftSeconds, *row.draftSeconds));
    if (row.verifySeconds)
        MLA_CHECK(group.setAttribute(schema::verifySeconds, *row.verifySeconds));
    if (row.costs.measured())
        MLA_CHECK(group.setAttribute(schema::draftCost, row.costs.draft));
    MLA_CHECK(writeIfAny(group, schema::verifyCosts, row.costs.verify));
    MLA_CHECK(writeIfAny(group, schema::weight, row.weight));
    MLA_CHECK(writeIfAny(group, schema::speeds, row.speeds));
    MLA_CHECK(writeIfAny(group, schema::baselineSpeeds, row.baselineSpeeds));
    MLA_CHECK(writeIfAny(group, schema::acceptProbability, row.acceptProbability));
    return writeChoices(group, row.choices);
}

/// Offsets start at 0, do not fall, end at the number of ids.
bool offsetsFit(const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& ids)
{
    return !offsets.empty() && offsets.front() == 0 && std::ranges::is_sorted(offsets) &&
           static_cast<std::size_t>(offsets.back()) == ids.size();
}

/// Every id has its margin.
Status checkContinuations(const h5::Group& group, const ContinuationRecord& record)
{
    const bool choicesFit = record.choices.empty() ||
                            record.choices.ids.size() == TokenChoices::perToken * record.ids.size();
    if (offsetsFit(record.offsets, record.ids) && record.ids.size() == record.margins.size() &&
        (record.drawn.empty() || record.drawn.size() == record.ids.size()) && choicesFit)
        return {};
    return badInput("'" + group.path() +
                    "': offsets, ids, margins and top_ids do not fit together");
}

/// Looked up by bisection.
Status checkTokenTexts(const h5::Group& group, const TokenTextRecord& record)
{
    if (record.ids.size() == record.texts.size() && std::ranges::is_sorted(record.ids))
        return {};
    return badInput("'" + group.path() + "': as many texts as ids are needed, ids ascending");
}

Status checkChatPrompts(const h5::Group& group, const ChatPromptRecord& record)
{
    if (offsetsFit(record.offsets, record.ids) &&
        record.offsets.size() == record.prompts.size() + 1)
        return {};
    return badInput("'" + group.path() + "': prompts, offsets and ids do not fit together");
}

} // namespace

Status writeAcceptance(h5::Group& group, const AcceptanceRecord& row)
{
    if (!countsAgree(row))
        return badCounts(group);
    for (const auto& [name, text] : rowTexts(row))
        MLA_CHECK(putText(group, name, *text));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::k, row.k));
    MLA_CHECK(group.setAttribute(schema::temperature, row.temperature));
    MLA_CHECK(group.setAttribute(schema::seed, row.seed));
    MLA_CHECK(group.setAttribute(schema::tokens, row.tokens));
    MLA_CHECK(group.setAttribute(schema::wallTime, row.wallTime));
    MLA_CHECK(group.setAttribute(schema::plainSteps, row.plainSteps));
    MLA_CHECK(group.setAttribute<std::uint8_t>(schema::chatTemplate, row.chatTemplate));
    if (row.tokensPerSecond)
        MLA_CHECK(group.setAttribute(schema::tokensPerSecond, *row.tokensPerSecond));
    if (row.identicalToGreedy)
        MLA_CHECK(
            group.setAttribute<std::uint8_t>(schema::identicalToGreedy, *row.identicalToGreedy));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::prompt, row.prompt));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::drafted, row.drafted));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::accepted, row.accepted));
    return writeRowExtras(group, row);
}

Result<AcceptanceRecord> readAcceptance(const h5::Group& group)
{
    AcceptanceRecord row;
    for (const auto& [name, text] : rowTexts(row)) {
        MLA_TRY(value, getText(group, name));
        *text = std::move(value);
    }
    MLA_CHECK(readRowNumbers(group, row));
    MLA_TRY(prompt, group.readVector<std::int32_t>(schema::prompt));
    MLA_TRY(drafted, group.readVector<std::int32_t>(schema::drafted));
    MLA_TRY(accepted, group.readVector<std::int32_t>(schema::accepted));
    row.prompt = std::move(prompt);
    row.drafted = std::move(drafted);
    row.accepted = std::move(accepted);
    MLA_CHECK(readRowExtras(group, row));
    if (!countsAgree(row))
        return badCounts(group);
    return row;
}

Status writeContinuations(h5::Group& group, const ContinuationRecord& record)
{
    MLA_CHECK(checkContinuations(group, record));
    MLA_CHECK(putText(group, schema::target, record.target));
    MLA_CHECK(putText(group, schema::task, record.task));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::offsets, record.offsets));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::ids, record.ids));
    MLA_CHECK(group.writeVector<double>(schema::margins, record.margins));
    MLA_CHECK(writeIfAny(group, schema::drawn, record.drawn));
    return writeChoices(group, record.choices);
}

Result<ContinuationRecord> readContinuations(const h5::Group& group)
{
    ContinuationRecord record;
    MLA_TRY(target, getText(group, schema::target));
    MLA_TRY(task, getText(group, schema::task));
    MLA_TRY(offsets, group.readVector<std::int32_t>(schema::offsets));
    MLA_TRY(ids, group.readVector<std::int32_t>(schema::ids));
    MLA_TRY(margins, group.readVector<double>(schema::margins));
    record.target = std::move(target);
    record.task = std::move(task);
    record.offsets = std::move(offsets);
    record.ids = std::move(ids);
    record.margins = std::move(margins);
    MLA_CHECK(readIfThere(group, schema::drawn, record.drawn));
    MLA_CHECK(readChoices(group, record.choices));
    MLA_CHECK(checkContinuations(group, record));
    return record;
}

Status writeTokenTexts(h5::Group& group, const TokenTextRecord& record)
{
    MLA_CHECK(checkTokenTexts(group, record));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::ids, record.ids));
    return group.writeTexts(schema::texts, record.texts);
}

Result<TokenTextRecord> readTokenTexts(const h5::Group& group)
{
    MLA_TRY(ids, group.readVector<std::int32_t>(schema::ids));
    MLA_TRY(texts, group.readTexts(schema::texts));
    TokenTextRecord record{{}, std::move(ids), std::move(texts)};
    MLA_CHECK(checkTokenTexts(group, record));
    return record;
}

Status writeChatPrompts(h5::Group& group, const ChatPromptRecord& record)
{
    MLA_CHECK(checkChatPrompts(group, record));
    MLA_CHECK(putText(group, schema::checkpoint, record.checkpoint));
    MLA_CHECK(putText(group, schema::software, record.software));
    MLA_CHECK(group.writeTexts(schema::prompts, record.prompts));
    MLA_CHECK(group.writeVector<std::int32_t>(schema::offsets, record.offsets));
    return group.writeVector<std::int32_t>(schema::ids, record.ids);
}

Result<ChatPromptRecord> readChatPrompts(const h5::Group& group)
{
    MLA_TRY(checkpoint, getText(group, schema::checkpoint));
    MLA_TRY(software, getText(group, schema::software));
    MLA_TRY(prompts, group.readTexts(schema::prompts));
    MLA_TRY(offsets, group.readVector<std::int32_t>(schema::offsets));
    MLA_TRY(ids, group.readVector<std::int32_t>(schema::ids));
    ChatPromptRecord record{{},
                            std::move(checkpoint),
                            std::move(software),
                            std::move(prompts),
                            std::move(offsets),
                            std::move(ids)};
    MLA_CHECK(checkChatPrompts(group, record));
    return record;
}

} // namespace mla
