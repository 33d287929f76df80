// SPDX-License-Identifier: GPL-3.0-or-later
// Events of running jobs on their way from the worker thread to the window.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include <QtGlobal>

#include "core/base/job.h"

namespace mla::ui
{

using JobId = quint64; ///< 1, 2, 3, ... within one JobRunner; 0 is no job

/// Thread-safe. Workers push; the window takes what came in since last time, in order.
class EventQueue
{
public:
    void push(JobId job, const JobEvent& event);
    /// Events of `current`. Those of any other job are stale and dropped; of several progress
    /// values of one stage only the last is kept, every other event is.
    std::vector<JobEvent> take(JobId current);

private:
    std::mutex m_mutex;
    std::vector<std::pair<JobId, JobEvent>> m_events;
};

} // namespace mla::ui
