// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/continuation_record.h"

namespace mla
{

std::vector<Continuation> fromRecord(const ContinuationRecord& record)
{
    std::vector<Continuation> all;
    for (std::size_t i = 0; i + 1 < record.offsets.size(); ++i) {
        const auto begin = record.offsets[i], end = record.offsets[i + 1];
        all.push_back({{record.ids.begin() + begin, record.ids.begin() + end},
                       {record.margins.begin() + begin, record.margins.begin() + end}});
    }
    return all;
}

ContinuationRecord toRecord(const std::vector<Continuation>& all)
{
    ContinuationRecord record;
    record.offsets = {0};
    for (const Continuation& one : all) {
        record.ids.insert(record.ids.end(), one.ids.begin(), one.ids.end());
        record.margins.insert(record.margins.end(), one.margins.begin(), one.margins.end());
        record.offsets.push_back(static_cast<std::int32_t>(record.ids.size()));
    }
    return record;
}

} // namespace mla
