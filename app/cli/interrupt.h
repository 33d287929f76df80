// SPDX-License-Identifier: GPL-3.0-or-later
// SIGINT and SIGTERM as a stop token. The second one ends the program at once.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace mla::cli
{

class InterruptWatcher
{
public:
    /// `onInterrupt` runs on the watcher's thread, once, before the stop is requested.
    explicit InterruptWatcher(std::function<void()> onInterrupt);
    ~InterruptWatcher();
    InterruptWatcher(const InterruptWatcher&) = delete;
    InterruptWatcher& operator=(const InterruptWatcher&) = delete;

    [[nodiscard]] std::stop_token token() const { return m_stop.get_token(); }

private:
    std::stop_source m_stop;
    std::thread m_thread;
};

} // namespace mla::cli
