// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/continuation_record.h"

namespace mla
{

namespace
{

static_assert(keptChoices == TokenChoices::perToken);

/// The part [begin, end) of `all`, which may be absent.
template <typename To, typename From>
std::vector<To> part(const std::vector<From>& all, std::int64_t begin, std::int64_t end)
{
    if (all.empty())
        return {};
    return {all.begin() + begin, all.begin() + end};
}

template <typename To, typename From>
void append(std::vector<To>& all, const std::vector<From>& more)
{
    all.insert(all.end(), more.begin(), more.end());
}

} // namespace

std::vector<Continuation> fromRecord(const ContinuationRecord& record)
{
    constexpr std::int64_t top = TokenChoices::perToken;
    std::vector<Continuation> all;
    for (std::size_t i = 0; i + 1 < record.offsets.size(); ++i) {
        const std::int64_t begin = record.offsets[i], end = record.offsets[i + 1];
        all.push_back({part<int>(record.ids, begin, end), part<float>(record.margins, begin, end),
                       part<double>(record.drawn, begin, end),
                       part<std::int32_t>(record.choices.ids, top * begin, top * end),
                       part<float>(record.choices.probabilities, top * begin, top * end)});
    }
    return all;
}

ContinuationRecord toRecord(const std::vector<Continuation>& all)
{
    ContinuationRecord record;
    record.offsets = {0};
    for (const Continuation& one : all) {
        append(record.ids, one.ids);
        append(record.margins, one.margins);
        append(record.drawn, one.drawn);
        append(record.choices.ids, one.topIds);
        append(record.choices.probabilities, one.topProbabilities);
        record.offsets.push_back(static_cast<std::int32_t>(record.ids.size()));
    }
    return record;
}

} // namespace mla
