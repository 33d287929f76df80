// SPDX-License-Identifier: GPL-3.0-or-later
// The groups of a study, one pair of functions per record; measurements are in
// acceptance_layout.cpp.
#include "core/store/study_layout.h"

#include <algorithm>
#include <set>

#include "core/store/schema.h"

namespace mla
{

namespace
{

/// Attributes of the old file format end at 64 KiB with everything around them.
constexpr std::size_t longestAttribute = 60'000;

Status writeCheckpoint(h5::Group& group, const CheckpointRecord& record)
{
    MLA_CHECK(group.writeText(schema::config, record.configJson));
    MLA_CHECK(group.writeText(schema::path, record.path));
    return group.writeText(schema::fingerprint, record.fingerprint);
}

Result<CheckpointRecord> readCheckpoint(const h5::Group& group)
{
    MLA_TRY(config, group.readText(schema::config));
    MLA_TRY(path, group.readText(schema::path));
    MLA_TRY(fingerprint, group.readText(schema::fingerprint));
    return CheckpointRecord{{}, std::move(path), std::move(fingerprint), std::move(config)};
}

Status writeCalibration(h5::Group& group, const CalibrationRecord& record)
{
    const auto rows = static_cast<std::size_t>(std::max(record.sequences, 0));
    const auto columns = static_cast<std::size_t>(std::max(record.length, 0));
    MLA_CHECK(group.writeMatrix<std::int32_t>(schema::inputIds, rows, columns, record.inputIds));
    MLA_CHECK(group.writeMatrix<std::uint8_t>(schema::mask, rows, columns, record.mask));
    return group.writeText(schema::source, record.source);
}

Result<CalibrationRecord> readCalibration(const h5::Group& group)
{
    CalibrationRecord record;
    MLA_TRY(ids, group.readMatrix<std::int32_t>(schema::inputIds));
    MLA_TRY(mask, group.readMatrix<std::uint8_t>(schema::mask));
    MLA_TRY(source, group.readText(schema::source));
    constexpr std::size_t most = 1U << 30;
    if (ids.rows != mask.rows || ids.columns != mask.columns || ids.rows > most ||
        ids.columns > most)
        return badInput("'" + group.path() + "': input_ids and mask must be of equal shape");
    record.source = std::move(source);
    record.sequences = static_cast<int>(ids.rows);
    record.length = static_cast<int>(ids.columns);
    record.inputIds = std::move(ids.values);
    record.mask = std::move(mask.values);
    return record;
}

Status writeRunNumbers(h5::Group& group, const RunRecord& run)
{
    MLA_CHECK(group.setAttribute(schema::seed, run.seed));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::kvLoraRank, run.kvLoraRank));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::qkRopeHeadDim, run.qkRopeHeadDim));
    MLA_CHECK(group.setAttribute(schema::cacheElements, run.cacheElements));
    MLA_CHECK(group.setAttribute(schema::originalCacheElements, run.originalCacheElements));
    MLA_CHECK(group.setAttribute(schema::seconds, run.seconds));
    return group.setAttribute(schema::peakRssBytes, run.peakRssBytes);
}

/// The texts of a run and the members they belong to; one list for both directions.
template <typename Run>
auto runTexts(Run& run)
{
    return std::array{std::pair{schema::variant, &run.variant},
                      std::pair{schema::converter, &run.converter},
                      std::pair{schema::checkpoint, &run.checkpoint},
                      std::pair{schema::parent, &run.parent},
                      std::pair{schema::calibration, &run.calibration},
                      std::pair{schema::settings, &run.settingsJson},
                      std::pair{schema::draftPath, &run.draftPath},
                      std::pair{schema::device, &run.device},
                      std::pair{schema::software, &run.software},
                      std::pair{schema::created, &run.created}};
}

Status writeRun(h5::Group& group, const RunRecord& run)
{
    for (const auto& [name, text] : runTexts(run))
        MLA_CHECK(putText(group, name, *text));
    MLA_CHECK(writeRunNumbers(group, run));
    MLA_CHECK(group.writeTexts(schema::warnings, run.warnings));
    MLA_TRY(layers, group.create(schema::layers));
    for (std::size_t i = 0; i < run.layers.size(); ++i) {
        MLA_TRY(layer, layers.create(schema::layerName(run.layers[i].layer)));
        MLA_CHECK(layer.setAttribute<std::int64_t>(schema::order, static_cast<std::int64_t>(i)));
        MLA_CHECK(writeLayer(layer, run.layers[i]));
    }
    MLA_TRY(stages, group.create(schema::stages));
    for (const auto& [name, stage] : run.stages) {
        MLA_TRY(child, stages.create(schema::safeName(name)));
        MLA_CHECK(child.writeScalar(schema::perplexity, stage.perplexity));
        MLA_CHECK(child.writeScalar(schema::kl, stage.kl));
    }
    return writeRunDiagnostics(group, run);
}

Status readRunNumbers(const h5::Group& group, RunRecord& run)
{
    MLA_TRY(seed, group.attribute<std::uint64_t>(schema::seed));
    MLA_TRY(rank, group.attribute<std::int32_t>(schema::kvLoraRank));
    MLA_TRY(rope, group.attribute<std::int32_t>(schema::qkRopeHeadDim));
    MLA_TRY(cache, group.attribute<std::int64_t>(schema::cacheElements));
    MLA_TRY(original, group.attribute<std::int64_t>(schema::originalCacheElements));
    MLA_TRY(seconds, group.attribute<double>(schema::seconds));
    MLA_TRY(peak, group.attribute<std::int64_t>(schema::peakRssBytes));
    run.seed = seed;
    run.kvLoraRank = rank;
    run.qkRopeHeadDim = rope;
    run.cacheElements = cache;
    run.originalCacheElements = original;
    run.seconds = seconds;
    run.peakRssBytes = peak;
    return {};
}

/// Records under `parent/name`, one per subgroup, in the order in which they were stored. Groups
/// without that attribute (added by other programs) follow by name.
template <typename Record, typename Read>
Result<std::vector<Record>> readAll(const h5::Group& parent, const char* name, Read read)
{
    std::vector<Record> records;
    if (!parent.has(name))
        return records;
    MLA_TRY(group, parent.open(name));
    MLA_TRY(names, group.subgroups());
    std::vector<std::pair<std::int64_t, Record>> ordered;
    for (const std::string& child : names) {
        MLA_TRY(open, group.open(child));
        MLA_TRY(record, read(open));
        std::int64_t position = std::numeric_limits<std::int64_t>::max();
        if (open.hasAttribute(schema::order)) {
            MLA_TRY(stored, open.template attribute<std::int64_t>(schema::order));
            position = stored;
        }
        if constexpr (requires { record.id; })
            record.id = schema::idOf(child);
        ordered.emplace_back(position, std::move(record));
    }
    std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
    for (auto& entry : ordered)
        records.push_back(std::move(entry.second));
    return records;
}

Result<RunRecord> readRun(const h5::Group& group)
{
    RunRecord run;
    for (const auto& [name, text] : runTexts(run)) {
        MLA_TRY(value, getText(group, name));
        *text = std::move(value);
    }
    MLA_CHECK(readRunNumbers(group, run));
    MLA_TRY(warnings, group.readTexts(schema::warnings));
    MLA_TRY(layers, readAll<LayerRecord>(group, schema::layers, readLayer));
    MLA_TRY(stages, group.open(schema::stages));
    MLA_TRY(stageNames, stages.subgroups());
    for (const std::string& name : stageNames) {
        MLA_TRY(child, stages.open(name));
        MLA_TRY(perplexity, child.readScalar<double>(schema::perplexity));
        MLA_TRY(kl, child.readScalar<double>(schema::kl));
        run.stages[schema::idOf(name)] = {perplexity, kl};
    }
    MLA_CHECK(readRunDiagnostics(group, run));
    run.warnings = std::move(warnings);
    run.layers = std::move(layers);
    return run;
}

template <typename Record, typename Write>
Status writeAll(h5::Group& root, const char* name, const std::vector<Record>& records, Write write)
{
    MLA_TRY(parent, root.create(name));
    std::set<std::string> seen;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::string& id = records[i].id;
        if (id.empty() || !seen.insert(id).second)
            return badInput("'" + parent.path() + "': ids must be unique and not empty, found '" +
                            id + "'");
        MLA_TRY(group, parent.create(schema::safeName(id)));
        MLA_CHECK(group.setAttribute<std::int64_t>(schema::order, static_cast<std::int64_t>(i)));
        MLA_CHECK(write(group, records[i]));
    }
    return {};
}

} // namespace

Status putText(h5::Group& group, const std::string& name, const std::string& text)
{
    if (text.size() > longestAttribute || text.find('\0') != std::string::npos)
        return group.writeText(name, text);
    return group.setTextAttribute(name, text);
}

Result<std::string> getText(const h5::Group& group, const std::string& name)
{
    return group.has(name) ? group.readText(name) : group.textAttribute(name);
}

Status writeStudy(h5::Group& root, const StudyData& study)
{
    MLA_CHECK(putText(root, schema::created, study.created));
    MLA_CHECK(putText(root, schema::software, study.software));
    MLA_CHECK(root.writeText(schema::layout, schema::layoutTable()));
    MLA_CHECK(writeAll(root, schema::checkpoints, study.checkpoints, writeCheckpoint));
    MLA_CHECK(writeAll(root, schema::calibration, study.calibrations, writeCalibration));
    MLA_CHECK(writeAll(root, schema::runs, study.runs, writeRun));
    MLA_CHECK(writeAll(root, schema::acceptance, study.acceptance, writeAcceptance));
    MLA_CHECK(writeAll(root, schema::continuations, study.continuations, writeContinuations));
    MLA_CHECK(writeAll(root, schema::chatPrompts, study.chatPrompts, writeChatPrompts));
    MLA_CHECK(writeAll(root, schema::exports, study.exports, writeExport));
    return writeAll(root, schema::tokenTexts, study.tokenTexts, writeTokenTexts);
}

Result<StudyData> readStudy(const h5::Group& root)
{
    StudyData study;
    MLA_TRY(created, getText(root, schema::created));
    MLA_TRY(software, getText(root, schema::software));
    MLA_TRY(checkpoints, readAll<CheckpointRecord>(root, schema::checkpoints, readCheckpoint));
    MLA_TRY(calibrations, readAll<CalibrationRecord>(root, schema::calibration, readCalibration));
    MLA_TRY(runs, readAll<RunRecord>(root, schema::runs, readRun));
    MLA_TRY(acceptance, readAll<AcceptanceRecord>(root, schema::acceptance, readAcceptance));
    MLA_TRY(continuations,
            readAll<ContinuationRecord>(root, schema::continuations, readContinuations));
    MLA_TRY(chatPrompts, readAll<ChatPromptRecord>(root, schema::chatPrompts, readChatPrompts));
    MLA_TRY(tokenTexts, readAll<TokenTextRecord>(root, schema::tokenTexts, readTokenTexts));
    MLA_TRY(exports, readAll<ExportRecord>(root, schema::exports, readExport));
    study.created = std::move(created);
    study.software = std::move(software);
    study.checkpoints = std::move(checkpoints);
    study.calibrations = std::move(calibrations);
    study.runs = std::move(runs);
    study.acceptance = std::move(acceptance);
    study.continuations = std::move(continuations);
    study.chatPrompts = std::move(chatPrompts);
    study.tokenTexts = std::move(tokenTexts);
    study.exports = std::move(exports);
    return study;
}

} // namespace mla
