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
                    "': prompt, drafted and accepted must have equal lengths, with "
                    "0 <= accepted <= drafted <= k <= " +
                    std::to_string(longestDraft));
}

bool countsAgree(const AcceptanceRecord& row)
{
    if (row.k < 0 || row.k > longestDraft)
        return false;
    if (row.prompt.size() != row.drafted.size() || row.prompt.size() != row.accepted.size())
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
    MLA_TRY(plain, group.attribute<std::int64_t>(schema::plainSteps));
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

/// Offsets start at 0, do not fall, end at the number of ids.
bool offsetsFit(const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& ids)
{
    return !offsets.empty() && offsets.front() == 0 && std::ranges::is_sorted(offsets) &&
           static_cast<std::size_t>(offsets.back()) == ids.size();
}

/// Every id has its margin.
Status checkContinuations(const h5::Group& group, const ContinuationRecord& record)
{
    if (offsetsFit(record.offsets, record.ids) && record.ids.size() == record.margins.size())
        return {};
    return badInput("'" + group.path() + "': offsets, ids and margins do not fit together");
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
    return group.writeVector<std::int32_t>(schema::accepted, row.accepted);
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
    return group.writeVector<double>(schema::margins, record.margins);
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
    MLA_CHECK(checkContinuations(group, record));
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
