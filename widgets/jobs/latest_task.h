// SPDX-License-Identifier: GPL-3.0-or-later
// Short work off the GUI thread (reading a study, looking at a checkpoint) where only the answer to
// the newest request counts.
#pragma once

#include <functional>
#include <thread>

#include <QObject>

namespace mla::ui
{

/// Lives on the GUI thread. One request runs at a time; a newer one replaces whichever waits, and
/// the answer of an older one is dropped. Destruction waits for the request in flight.
class LatestTask : public QObject
{
    Q_OBJECT
public:
    using Deliver = std::function<void()>;

    explicit LatestTask(QObject* parent = nullptr) : QObject(parent) {}

    /// `work` runs on a worker thread, then `deliver(its result)` on the GUI thread.
    template <typename Work, typename Handler>
    void start(Work work, Handler deliver)
    {
        enqueue([work = std::move(work), deliver = std::move(deliver)]() -> Deliver {
            return [result = work(), deliver] { deliver(result); };
        });
    }
    void drop(); ///< forget every request made so far
    [[nodiscard]] bool busy() const { return m_running || m_waiting; }

signals:
    void busyChanged(bool busy);

private:
    void enqueue(std::function<Deliver()> job);
    void launch(const std::function<Deliver()>& job);
    void finish(quint64 generation, const Deliver& deliver);

    std::function<Deliver()> m_waiting;
    quint64 m_generation = 0; ///< of the newest request
    bool m_running = false;
    std::jthread m_thread; ///< last member: joined before the rest goes
};

} // namespace mla::ui
