// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/jobs/live_run.h"

#include <algorithm>
#include <limits>

namespace mla::ui
{

namespace
{

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

void append(LayerRecord& layer, const LossPoint& point)
{
    if (!layer.loss)
        layer.loss.emplace();
    layer.loss->step.push_back(point.step);
    layer.loss->train.push_back(point.step == 0 ? nothing : point.train);
    layer.loss->heldout.push_back(point.heldout.value_or(nothing));
    layer.loss->learningRate.push_back(point.learningRate);
}

std::optional<FidelityRecord> fidelity(const std::optional<double>& relativeError)
{
    if (!relativeError)
        return std::nullopt;
    return FidelityRecord{*relativeError, nothing, nothing};
}

void apply(LayerRecord& layer, const LayerFinished& done)
{
    layer.lossBefore = done.lossBefore;
    layer.lossAfter = done.lossAfter;
    layer.before = fidelity(done.relativeErrorBefore);
    layer.after = fidelity(done.relativeErrorAfter);
    layer.seconds = done.seconds;
    layer.keptConverted = done.keptConverted;
    layer.complete = true;
}

bool isRefinement(const std::string& stage)
{
    return stage == "refine";
}

} // namespace

void LiveRun::follow(JobId job)
{
    stop();
    m_job = job;
}

void LiveRun::end(JobId job)
{
    if (job == m_job)
        stop();
}

void LiveRun::stop()
{
    if (!m_active)
        return;
    m_active = false;
    emit ended();
}

void LiveRun::begin(const StageStarted& stage)
{
    stop();
    if (!isRefinement(stage.stage))
        return;
    m_record = {};
    m_record.id = stage.run;
    m_record.variant = stage.run.substr(stage.run.rfind('/') + 1);
    m_active = true;
    emit started();
}

void LiveRun::consume(JobId job, const std::vector<JobEvent>& events)
{
    if (job != m_job)
        return;
    std::vector<LossPoint> points;
    const auto flush = [&] {
        if (!points.empty())
            emit pointsAdded(points);
        points.clear();
    };
    for (const JobEvent& event : events) {
        if (const auto* stage = std::get_if<StageStarted>(&event)) {
            flush();
            begin(*stage);
        } else if (const auto* point = std::get_if<LossPoint>(&event); point && m_active) {
            append(layerFor(point->layer), *point);
            points.push_back(*point);
        } else if (const auto* done = std::get_if<LayerFinished>(&event); done && m_active) {
            flush();
            apply(layerFor(done->layer), *done);
            emit layerFinished(done->layer.value);
        }
    }
    flush();
}

LayerRecord& LiveRun::layerFor(LayerIndex layer)
{
    auto& layers = m_record.layers;
    const auto place = std::lower_bound(
        layers.begin(), layers.end(), layer,
        [](const LayerRecord& record, LayerIndex index) { return record.layer < index; });
    if (place != layers.end() && place->layer == layer)
        return *place;
    LayerRecord record;
    record.layer = layer;
    return *layers.insert(place, std::move(record));
}

const LayerRecord* LiveRun::layer(int layer) const
{
    for (const LayerRecord& record : m_record.layers)
        if (record.layer.value == layer)
            return &record;
    return nullptr;
}

} // namespace mla::ui
