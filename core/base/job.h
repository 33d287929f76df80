// SPDX-License-Identifier: GPL-3.0-or-later
// What a running stage sees of its surroundings: a stop token, and typed events that carry plain
// values (never tensors), so that a command line and a window can show the same run.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "core/base/indices.h"
#include "core/base/result.h"

namespace mla
{

/// A stage begins; `total` is its amount of work in `unit`s.
struct StageStarted {
    std::string stage; ///< "calibrate", "convert", "refine", "accept", ...
    int total = 0;
    std::string unit; ///< "layers", "sequences", "prompts"
    std::string run;  ///< RunRecord::id, when the stage belongs to one
};
/// Work done so far in the current stage, 0..total.
struct StageProgress {
    std::string stage;
    double done = 0;
    int total = 0;
};
/// One optimizer step of one layer. Losses are the formula of the objective, not scaled.
struct LossPoint {
    LayerIndex layer;
    int step = 0; ///< 1-based; 0 is before training
    double train = 0;
    std::optional<double> heldout; ///< only on steps that were evaluated
    double learningRate = 0;
};
/// A layer is done and its part is on disk.
struct LayerFinished {
    LayerIndex layer;
    std::string stage;
    std::optional<double> lossBefore, lossAfter;
    std::optional<double> relativeErrorBefore, relativeErrorAfter;
    double seconds = 0;
    bool keptConverted = false; ///< training did not help: the converted weights stay
};
/// One prompt of an acceptance measurement is done.
struct PromptMeasured {
    std::string task;
    int index = 0;
    int drafted = 0, accepted = 0, steps = 0;
};
struct JobMessage {
    enum class Level { Info, Warning } level = Level::Info;
    std::string text;
};
using JobEvent =
    std::variant<StageStarted, StageProgress, LossPoint, LayerFinished, PromptMeasured, JobMessage>;

/// Passed by reference to every stage. Thread-safe: workers of one stage may all call it.
class JobContext
{
public:
    JobContext() = default;
    JobContext(std::stop_token stop, std::function<void(const JobEvent&)> onEvent)
        : m_stop(std::move(stop)), m_onEvent(std::move(onEvent))
    {
    }
    JobContext(const JobContext&) = delete;
    JobContext& operator=(const JobContext&) = delete;

    [[nodiscard]] bool stopRequested() const { return m_stop.stop_requested(); }
    [[nodiscard]] const std::stop_token& stopToken() const { return m_stop; }
    void emitEvent(const JobEvent& event)
    {
        if (!m_onEvent)
            return;
        const std::scoped_lock lock(m_mutex);
        m_onEvent(event);
    }
    void info(std::string text) { emitEvent(JobMessage{JobMessage::Level::Info, std::move(text)}); }
    void warn(std::string text)
    {
        emitEvent(JobMessage{JobMessage::Level::Warning, std::move(text)});
    }

private:
    std::stop_token m_stop;
    std::function<void(const JobEvent&)> m_onEvent;
    std::mutex m_mutex;
};

} // namespace mla
