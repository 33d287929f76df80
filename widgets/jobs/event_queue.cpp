// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/jobs/event_queue.h"

#include <algorithm>

namespace mla::ui
{

void EventQueue::push(JobId job, const JobEvent& event)
{
    const std::scoped_lock lock(m_mutex);
    m_events.emplace_back(job, event);
}

std::vector<JobEvent> EventQueue::take(JobId current)
{
    std::vector<std::pair<JobId, JobEvent>> arrived;
    {
        const std::scoped_lock lock(m_mutex);
        arrived.swap(m_events);
    }
    std::vector<JobEvent> kept;
    bool newerProgress = false;
    for (auto entry = arrived.rbegin(); entry != arrived.rend(); ++entry) {
        if (entry->first != current)
            continue;
        const bool progress = std::holds_alternative<StageProgress>(entry->second);
        if (progress && newerProgress)
            continue;
        if (progress)
            newerProgress = true;
        else if (std::holds_alternative<StageStarted>(entry->second))
            newerProgress = false;
        kept.push_back(std::move(entry->second));
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
}

} // namespace mla::ui
