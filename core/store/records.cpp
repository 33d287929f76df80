// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/records.h"

#include <algorithm>
#include <functional>
#include <map>

namespace mla
{

namespace
{

template <typename Record>
void putById(std::vector<Record>& records, Record record)
{
    const auto found = std::ranges::find(records, record.id, &Record::id);
    if (found == records.end())
        records.push_back(std::move(record));
    else
        *found = std::move(record);
}

} // namespace

std::optional<double> RunRecord::meanRelativeError() const
{
    double sum = 0;
    int count = 0;
    for (const LayerRecord& layer : layers) {
        if (!layer.after)
            continue;
        sum += layer.after->relativeError;
        ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::vector<double> AttentionMapRecord::difference() const
{
    std::vector<double> values(original.size());
    std::ranges::transform(draft, original, values.begin(), std::minus<>());
    return values;
}

void RunRecord::put(AttentionMapRecord map)
{
    const auto found = std::ranges::find_if(attentionMaps, [&](const AttentionMapRecord& other) {
        return other.layer == map.layer && other.head == map.head && other.prompt == map.prompt;
    });
    if (found == attentionMaps.end())
        attentionMaps.push_back(std::move(map));
    else
        *found = std::move(map);
}

const std::string* TokenTextRecord::find(std::int32_t token) const
{
    const auto found = std::ranges::lower_bound(ids, token);
    if (found == ids.end() || *found != token)
        return nullptr;
    return &texts[static_cast<std::size_t>(found - ids.begin())];
}

const RunRecord* StudyData::findRun(const std::string& id) const
{
    const auto found = std::ranges::find(runs, id, &RunRecord::id);
    return found == runs.end() ? nullptr : &*found;
}

void StudyData::put(CheckpointRecord record)
{
    putById(checkpoints, std::move(record));
}
void StudyData::put(CalibrationRecord record)
{
    putById(calibrations, std::move(record));
}
void StudyData::put(RunRecord record)
{
    putById(runs, std::move(record));
}
void StudyData::put(AcceptanceRecord record)
{
    putById(acceptance, std::move(record));
}
void StudyData::put(ContinuationRecord record)
{
    putById(continuations, std::move(record));
}
void StudyData::put(ChatPromptRecord record)
{
    putById(chatPrompts, std::move(record));
}
void StudyData::put(ExportRecord record)
{
    putById(exports, std::move(record));
}
void StudyData::put(TokenTextRecord record)
{
    std::map<std::int32_t, std::string> texts;
    const auto add = [&](TokenTextRecord& from) {
        for (std::size_t i = 0; i < from.ids.size(); ++i)
            texts[from.ids[i]] = std::move(from.texts[i]);
    };
    const auto old = std::ranges::find(tokenTexts, record.id, &TokenTextRecord::id);
    if (old != tokenTexts.end())
        add(*old);
    add(record);
    TokenTextRecord all{record.id, {}, {}};
    for (auto& [token, text] : texts) {
        all.ids.push_back(token);
        all.texts.push_back(std::move(text));
    }
    putById(tokenTexts, std::move(all));
}

} // namespace mla
