// SPDX-License-Identifier: GPL-3.0-or-later
// The groups of a run that `fidelity` adds: error sources, positions, attention maps.
#include <array>

#include "core/store/schema.h"
#include "core/store/study_layout.h"

namespace mla
{

namespace
{

template <typename Note>
auto noteTexts(Note& note)
{
    return std::array{std::pair{schema::measuredOn, &note.measuredOn},
                      std::pair{schema::noConversion, &note.noConversion},
                      std::pair{schema::noRefinement, &note.noRefinement}};
}

constexpr std::array<std::pair<const char*, int PositionBucket::*>, 2> kEnds = {
    {{schema::first, &PositionBucket::first}, {schema::last, &PositionBucket::last}}};
constexpr std::array<std::pair<const char*, double PositionBucket::*>, 3> kScores = {
    {{schema::originalPerplexity, &PositionBucket::originalPerplexity},
     {schema::perplexity, &PositionBucket::perplexity},
     {schema::kl, &PositionBucket::kl}}};

/// One member of every bucket.
template <typename T>
std::vector<T> column(const std::vector<PositionBucket>& buckets, T PositionBucket::*member)
{
    std::vector<T> values;
    for (const PositionBucket& bucket : buckets)
        values.push_back(bucket.*member);
    return values;
}

template <typename T>
Status readColumn(const h5::Group& group, const char* name, std::vector<PositionBucket>& buckets,
                  T PositionBucket::*member)
{
    MLA_TRY(values, group.readVector<T>(name));
    if (values.size() != buckets.size())
        return badInput("'" + group.path() + "/" + name + "': must have one value a bucket, as " +
                        schema::tokens + " has");
    for (std::size_t i = 0; i < values.size(); ++i)
        buckets[i].*member = values[i];
    return {};
}

Status writePositions(h5::Group& run, const PositionScores& scores)
{
    MLA_TRY(group, run.create(schema::positions));
    MLA_CHECK(putText(group, schema::source, scores.source));
    const std::vector<std::int64_t> tokens = column(scores.buckets, &PositionBucket::tokens);
    MLA_CHECK(group.writeVector<std::int64_t>(schema::tokens, tokens));
    for (const auto& [name, member] : kEnds) {
        const std::vector<std::int32_t> ends = column(scores.buckets, member);
        MLA_CHECK(group.writeVector<std::int32_t>(name, ends));
    }
    for (const auto& [name, member] : kScores) {
        const std::vector<double> values = column(scores.buckets, member);
        MLA_CHECK(group.writeVector<double>(name, values));
    }
    return {};
}

Result<PositionScores> readPositions(const h5::Group& group)
{
    PositionScores scores;
    MLA_TRY(source, getText(group, schema::source));
    MLA_TRY(tokens, group.readVector<std::int64_t>(schema::tokens));
    scores.source = std::move(source);
    scores.buckets.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
        scores.buckets[i].tokens = tokens[i];
    for (const auto& [name, member] : kEnds)
        MLA_CHECK(readColumn(group, name, scores.buckets, member));
    for (const auto& [name, member] : kScores)
        MLA_CHECK(readColumn(group, name, scores.buckets, member));
    return scores;
}

Status writeMap(h5::Group& group, const AttentionMapRecord& map)
{
    const std::size_t length = map.tokens.size();
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::layer, map.layer.value));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::head, map.head.value));
    MLA_CHECK(group.writeText(schema::prompt, map.prompt));
    MLA_CHECK(group.writeTexts(schema::tokens, map.tokens));
    MLA_CHECK(group.writeMatrix<double>(schema::original, length, length, map.original));
    return group.writeMatrix<double>(schema::draft, length, length, map.draft);
}

Result<std::vector<double>> readProbabilities(const h5::Group& group, const char* name,
                                              std::size_t length)
{
    MLA_TRY(matrix, group.readMatrix<double>(name));
    if (matrix.rows != length || matrix.columns != length)
        return badInput("'" + group.path() + "/" + name + "': must be [tokens, tokens] = [" +
                        std::to_string(length) + ", " + std::to_string(length) + "]");
    return std::move(matrix.values);
}

Result<AttentionMapRecord> readMap(const h5::Group& group)
{
    AttentionMapRecord map;
    MLA_TRY(layer, group.attribute<std::int32_t>(schema::layer));
    MLA_TRY(head, group.attribute<std::int32_t>(schema::head));
    if (layer < 0 || head < 0)
        return badInput("'" + group.path() + "': layer and head must not be negative");
    MLA_TRY(prompt, group.readText(schema::prompt));
    MLA_TRY(tokens, group.readTexts(schema::tokens));
    MLA_TRY(original, readProbabilities(group, schema::original, tokens.size()));
    MLA_TRY(draft, readProbabilities(group, schema::draft, tokens.size()));
    return AttentionMapRecord{LayerIndex(layer), HeadIndex(head),     std::move(prompt),
                              std::move(tokens), std::move(original), std::move(draft)};
}

Status writeMaps(h5::Group& run, const std::vector<AttentionMapRecord>& maps)
{
    MLA_TRY(group, run.create(schema::attentionMaps));
    for (std::size_t i = 0; i < maps.size(); ++i) {
        // Numbered like layers, so that the order of names is the order of the maps.
        MLA_TRY(child, group.create(schema::layerName(LayerIndex(static_cast<int>(i)))));
        MLA_CHECK(writeMap(child, maps[i]));
    }
    return {};
}

} // namespace

Status writeRunDiagnostics(h5::Group& run, const RunRecord& record)
{
    if (record.errorSources) {
        MLA_TRY(group, run.create(schema::errorSources));
        for (const auto& [name, text] : noteTexts(*record.errorSources))
            MLA_CHECK(putText(group, name, *text));
    }
    if (record.positions)
        MLA_CHECK(writePositions(run, *record.positions));
    return record.attentionMaps.empty() ? Status() : writeMaps(run, record.attentionMaps);
}

Status readRunDiagnostics(const h5::Group& run, RunRecord& record)
{
    if (run.has(schema::errorSources)) {
        MLA_TRY(group, run.open(schema::errorSources));
        ErrorSourcesNote note;
        for (const auto& [name, text] : noteTexts(note)) {
            MLA_TRY(value, getText(group, name));
            *text = std::move(value);
        }
        record.errorSources = std::move(note);
    }
    if (run.has(schema::positions)) {
        MLA_TRY(group, run.open(schema::positions));
        MLA_TRY(scores, readPositions(group));
        record.positions = std::move(scores);
    }
    if (!run.has(schema::attentionMaps))
        return {};
    MLA_TRY(group, run.open(schema::attentionMaps));
    MLA_TRY(names, group.subgroups());
    for (const std::string& name : names) {
        MLA_TRY(child, group.open(name));
        MLA_TRY(map, readMap(child));
        record.attentionMaps.push_back(std::move(map));
    }
    return {};
}

} // namespace mla
