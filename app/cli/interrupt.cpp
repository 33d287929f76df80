// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace mla::cli
{
namespace
{

// A signal handler has no other way to reach its program than a static.
std::array<int, 2> wakePipe = {-1, -1};
volatile std::sig_atomic_t signalsSeen = 0;

void onSignal(int signal)
{
    const int saved = errno;
    signalsSeen = signalsSeen + 1;
    if (signalsSeen > 1) {
        std::signal(signal, SIG_DFL);
        std::raise(signal);
    } else if (::write(wakePipe[1], "i", 1) != 1) {
        std::signal(signal, SIG_DFL); // no way to stop in order: the next one ends the program
    }
    errno = saved;
}

} // namespace

InterruptWatcher::InterruptWatcher(std::function<void()> onInterrupt)
{
    if (::pipe2(wakePipe.data(), O_CLOEXEC) != 0)
        return; // the signals keep their default action
    m_thread = std::thread([this, onInterrupt = std::move(onInterrupt)] {
        char reason = 0;
        while (::read(wakePipe[0], &reason, 1) < 0 && errno == EINTR) {
        }
        if (reason == 'i') {
            onInterrupt();
            m_stop.request_stop();
        }
    });
    struct sigaction action = {};
    action.sa_handler = onSignal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

InterruptWatcher::~InterruptWatcher()
{
    if (!m_thread.joinable())
        return;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    if (::write(wakePipe[1], "q", 1) != 1)
        ::close(wakePipe[1]);
    m_thread.join();
}

} // namespace mla::cli
