// SPDX-License-Identifier: GPL-3.0-or-later
// One layer's group, in a study and in a part.
#include <cmath>

#include "core/store/schema.h"
#include "core/store/study_layout.h"

namespace mla
{

namespace
{

Error unequalLengths(const h5::Group& group, const std::string& names)
{
    return badInput("'" + group.path() + "': " + names + " must have equal lengths");
}

Status writeLoss(h5::Group& layer, const LossCurve& curve)
{
    MLA_TRY(group, layer.create(schema::loss));
    const std::size_t steps = curve.step.size();
    if (curve.train.size() != steps || curve.heldout.size() != steps ||
        curve.learningRate.size() != steps)
        return unequalLengths(group, "step, train, heldout and lr");
    MLA_CHECK(group.writeVector<std::int32_t>(schema::step, curve.step));
    MLA_CHECK(group.writeVector<double>(schema::train, curve.train));
    MLA_CHECK(group.writeVector<double>(schema::heldout, curve.heldout));
    return group.writeVector<double>(schema::learningRate, curve.learningRate);
}

Result<LossCurve> readLoss(const h5::Group& group)
{
    LossCurve curve;
    MLA_TRY(step, group.readVector<std::int32_t>(schema::step));
    MLA_TRY(train, group.readVector<double>(schema::train));
    MLA_TRY(heldout, group.readVector<double>(schema::heldout));
    MLA_TRY(rate, group.readVector<double>(schema::learningRate));
    if (train.size() != step.size() || heldout.size() != step.size() || rate.size() != step.size())
        return unequalLengths(group, "step, train, heldout and lr");
    return LossCurve{std::move(step), std::move(train), std::move(heldout), std::move(rate)};
}

Status writeSpectrum(h5::Group& layer, const SpectrumRecord& record)
{
    MLA_TRY(group, layer.create(schema::spectrum));
    MLA_CHECK(group.writeVector<double>(schema::weights, record.weights));
    MLA_CHECK(group.writeVector<double>(schema::activations, record.activations));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::rank, record.rank));
    MLA_CHECK(group.setAttribute(schema::retainedEnergy, record.retainedEnergy));
    MLA_CHECK(group.setAttribute(schema::effectiveRank, record.effectiveRank));
    return group.setAttribute(schema::tailBound, record.tailBound);
}

Result<SpectrumRecord> readSpectrum(const h5::Group& group)
{
    MLA_TRY(weights, group.readVector<double>(schema::weights));
    MLA_TRY(activations, group.readVector<double>(schema::activations));
    MLA_TRY(rank, group.attribute<std::int32_t>(schema::rank));
    MLA_TRY(retained, group.attribute<double>(schema::retainedEnergy));
    MLA_TRY(effective, group.attribute<double>(schema::effectiveRank));
    MLA_TRY(tail, group.attribute<double>(schema::tailBound));
    return SpectrumRecord{
        std::move(weights), std::move(activations), rank, retained, effective, tail};
}

/// [heads, pairs]; a map that was not measured is empty and stored as [0, pairs].
Status writeMap(h5::Group& group, const std::string& name, const RopeRecord& record,
                const std::vector<double>& values)
{
    const auto heads = static_cast<std::size_t>(values.empty() ? 0 : std::max(record.heads, 0));
    const auto pairs = static_cast<std::size_t>(std::max(record.pairs, 0));
    return group.writeMatrix<double>(name, heads, pairs, values);
}

Result<std::vector<double>> readMap(const h5::Group& group, const std::string& name,
                                    const RopeRecord& record)
{
    MLA_TRY(matrix, group.readMatrix<double>(name));
    const bool fits = matrix.rows == static_cast<std::size_t>(record.heads) &&
                      matrix.columns == static_cast<std::size_t>(record.pairs);
    if (!fits && !matrix.values.empty())
        return badInput("'" + group.path() + "/" + name + "': must be [heads, pairs] = [" +
                        std::to_string(record.heads) + ", " + std::to_string(record.pairs) + "]");
    return std::move(matrix.values);
}

Status writeRope(h5::Group& layer, const RopeRecord& record)
{
    MLA_TRY(group, layer.create(schema::rope));
    if (record.distance.size() != record.scoreResidual.size())
        return unequalLengths(group, "distance and score_residual");
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::heads, record.heads));
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::pairs, record.pairs));
    MLA_CHECK(writeMap(group, schema::keyEnergy, record, record.keyEnergy));
    MLA_CHECK(writeMap(group, schema::keptEnergy, record, record.keptEnergy));
    MLA_CHECK(writeMap(group, schema::scoreEnergy, record, record.scoreEnergy));
    MLA_CHECK(group.writeVector<double>(schema::distance, record.distance));
    return group.writeVector<double>(schema::scoreResidual, record.scoreResidual);
}

Result<RopeRecord> readRope(const h5::Group& group)
{
    RopeRecord record;
    MLA_TRY(heads, group.attribute<std::int32_t>(schema::heads));
    MLA_TRY(pairs, group.attribute<std::int32_t>(schema::pairs));
    record.heads = heads;
    record.pairs = pairs;
    MLA_TRY(key, readMap(group, schema::keyEnergy, record));
    MLA_TRY(kept, readMap(group, schema::keptEnergy, record));
    MLA_TRY(score, readMap(group, schema::scoreEnergy, record));
    MLA_TRY(distance, group.readVector<double>(schema::distance));
    MLA_TRY(residual, group.readVector<double>(schema::scoreResidual));
    if (distance.size() != residual.size())
        return unequalLengths(group, "distance and score_residual");
    record.keyEnergy = std::move(key);
    record.keptEnergy = std::move(kept);
    record.scoreEnergy = std::move(score);
    record.distance = std::move(distance);
    record.scoreResidual = std::move(residual);
    return record;
}

/// The numbers of a layer's fidelity group; one list for both directions.
template <typename Record>
auto fidelities(Record& record)
{
    return std::array{std::pair{schema::before, &record.before},
                      std::pair{schema::after, &record.after},
                      std::pair{schema::ropeOnly, &record.sources.ropeOnly},
                      std::pair{schema::rankOnly, &record.sources.rankOnly},
                      std::pair{schema::both, &record.sources.both},
                      std::pair{schema::refined, &record.sources.refined}};
}

Status writeFidelity(h5::Group& layer, const LayerRecord& record)
{
    if (!record.before && !record.after && !record.sources.any())
        return {};
    MLA_TRY(group, layer.create(schema::fidelity));
    MLA_CHECK(group.setTextAttribute(schema::columns, schema::fidelityColumns));
    for (const auto& [name, fidelity] : fidelities(record)) {
        if (!*fidelity)
            continue;
        const std::array<double, 3> values = {(*fidelity)->relativeError, (*fidelity)->cosine,
                                              (*fidelity)->attentionKl};
        MLA_CHECK(group.writeVector<double>(name, values));
    }
    return {};
}

Result<std::optional<FidelityRecord>> readFidelity(const h5::Group& group, const char* name)
{
    if (!group.has(name))
        return std::optional<FidelityRecord>();
    MLA_TRY(values, group.readVector<double>(name));
    if (values.size() != 3)
        return badInput("'" + group.path() + "/" + name + "': must hold 3 numbers, " +
                        schema::fidelityColumns);
    return std::optional(FidelityRecord{values[0], values[1], values[2]});
}

Result<std::optional<double>> readOptional(const h5::Group& group, const char* name)
{
    if (!group.hasAttribute(name))
        return std::optional<double>();
    MLA_TRY(value, group.attribute<double>(name));
    return std::optional(value);
}

Status readDiagnostics(const h5::Group& group, LayerRecord& record)
{
    if (group.has(schema::loss)) {
        MLA_TRY(child, group.open(schema::loss));
        MLA_TRY(loss, readLoss(child));
        record.loss = std::move(loss);
    }
    if (group.has(schema::spectrum)) {
        MLA_TRY(child, group.open(schema::spectrum));
        MLA_TRY(spectrum, readSpectrum(child));
        record.spectrum = std::move(spectrum);
    }
    if (group.has(schema::rope)) {
        MLA_TRY(child, group.open(schema::rope));
        MLA_TRY(rope, readRope(child));
        record.rope = std::move(rope);
    }
    if (group.has(schema::fidelity)) {
        MLA_TRY(child, group.open(schema::fidelity));
        for (const auto& [name, fidelity] : fidelities(record)) {
            MLA_TRY(stored, readFidelity(child, name));
            *fidelity = stored;
        }
    }
    return {};
}

} // namespace

Status writeLayer(h5::Group& group, const LayerRecord& record)
{
    MLA_CHECK(group.setAttribute<std::int32_t>(schema::layer, record.layer.value));
    MLA_CHECK(group.setAttribute<std::uint8_t>(schema::keptConverted, record.keptConverted));
    if (record.lossBefore)
        MLA_CHECK(group.setAttribute(schema::lossBefore, *record.lossBefore));
    if (record.lossAfter)
        MLA_CHECK(group.setAttribute(schema::lossAfter, *record.lossAfter));
    MLA_CHECK(group.writeScalar(schema::seconds, record.seconds));
    MLA_CHECK(group.writeScalar<std::uint8_t>(schema::complete, record.complete));
    if (record.loss)
        MLA_CHECK(writeLoss(group, *record.loss));
    if (record.spectrum)
        MLA_CHECK(writeSpectrum(group, *record.spectrum));
    if (record.rope)
        MLA_CHECK(writeRope(group, *record.rope));
    return writeFidelity(group, record);
}

Result<LayerRecord> readLayer(const h5::Group& group)
{
    LayerRecord record;
    MLA_TRY(layer, group.attribute<std::int32_t>(schema::layer));
    if (layer < 0)
        return badInput("'" + group.path() + "': layer " + std::to_string(layer) + " is negative");
    MLA_TRY(kept, group.attribute<std::uint8_t>(schema::keptConverted));
    MLA_TRY(seconds, group.readScalar<double>(schema::seconds));
    MLA_TRY(complete, group.readScalar<std::uint8_t>(schema::complete));
    MLA_TRY(lossBefore, readOptional(group, schema::lossBefore));
    MLA_TRY(lossAfter, readOptional(group, schema::lossAfter));
    record.layer = LayerIndex(layer);
    record.keptConverted = kept != 0;
    record.seconds = seconds;
    record.complete = complete != 0;
    record.lossBefore = lossBefore;
    record.lossAfter = lossAfter;
    MLA_CHECK(readDiagnostics(group, record));
    return record;
}

} // namespace mla
