// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/jobs/latest_task.h"

#include <utility>

namespace mla::ui
{

void LatestTask::enqueue(std::function<Deliver()> job)
{
    ++m_generation;
    if (m_running) {
        m_waiting = std::move(job);
        return;
    }
    launch(job);
    emit busyChanged(true);
}

void LatestTask::launch(const std::function<Deliver()>& job)
{
    m_running = true;
    m_thread = std::jthread([this, job, generation = m_generation] {
        const Deliver deliver = job();
        QMetaObject::invokeMethod(
            this, [this, generation, deliver] { finish(generation, deliver); },
            Qt::QueuedConnection);
    });
}

void LatestTask::finish(quint64 generation, const Deliver& deliver)
{
    m_thread.join();
    m_running = false;
    if (m_waiting) {
        launch(std::exchange(m_waiting, nullptr));
        return;
    }
    emit busyChanged(false);
    if (generation == m_generation)
        deliver();
}

void LatestTask::drop()
{
    ++m_generation;
    m_waiting = nullptr;
}

} // namespace mla::ui
