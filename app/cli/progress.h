// SPDX-License-Identifier: GPL-3.0-or-later
// Job events as progress on standard error: one line rewritten on a terminal, a line now and then
// anywhere else, with the time that is left.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "core/base/job.h"

namespace mla::cli
{

/// Not thread-safe by itself: JobContext delivers events one at a time.
class ProgressPrinter
{
public:
    /// `quiet` leaves warnings only.
    explicit ProgressPrinter(bool quiet);

    void handle(const JobEvent& event);
    void warn(const std::string& text); ///< each text once
    void finish(bool succeeded);        ///< ends the current stage and its line

private:
    using Clock = std::chrono::steady_clock;

    void show(const StageStarted& event);
    void show(const StageProgress& event);
    void show(const LossPoint& event);
    void show(const LayerFinished& event);
    void show(const PromptMeasured& event);
    void show(const JobMessage& event);

    void beginStage(const std::string& stage, int total, const std::string& unit);
    void endStage(bool succeeded);
    void refresh(bool force);
    void writeLine(const std::string& text); ///< a line of its own that stays
    [[nodiscard]] std::string stateText() const;

    bool m_quiet, m_terminal;
    bool m_lineShown = false;
    std::set<std::string> m_warnings;
    std::string m_stage, m_unit, m_detail;
    double m_done = 0;
    int m_total = 0;
    std::int64_t m_drafted = 0, m_accepted = 0;
    Clock::time_point m_stageStart, m_lastShown;
};

} // namespace mla::cli
