// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "app/cli/text.h"

namespace mla::cli
{
namespace
{

using std::chrono::milliseconds;
constexpr milliseconds terminalInterval(100);
constexpr milliseconds logInterval(10'000);

double secondsBetween(std::chrono::steady_clock::time_point from,
                      std::chrono::steady_clock::time_point to)
{
    return std::chrono::duration<double>(to - from).count();
}

std::size_t terminalWidth()
{
    winsize size = {};
    constexpr std::size_t usual = 80;
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

} // namespace

ProgressPrinter::ProgressPrinter(bool quiet)
    : m_quiet(quiet), m_terminal(::isatty(STDERR_FILENO) == 1)
{
}

void ProgressPrinter::handle(const JobEvent& event)
{
    std::visit([this](const auto& typed) { show(typed); }, event);
}

void ProgressPrinter::warn(const std::string& text)
{
    if (m_warnings.insert(text).second)
        writeLine("warning: " + text);
}

void ProgressPrinter::finish(bool succeeded)
{
    endStage(succeeded);
}

void ProgressPrinter::show(const StageStarted& event)
{
    beginStage(event.stage, event.total, event.unit);
}

void ProgressPrinter::show(const StageProgress& event)
{
    if (event.stage != m_stage)
        beginStage(event.stage, event.total, {});
    m_done = event.done;
    m_total = event.total;
    refresh(false);
}

void ProgressPrinter::show(const LossPoint& event)
{
    if (!m_terminal || !event.heldout)
        return;
    m_detail = "layer " + std::to_string(event.layer.value) + " step " +
               std::to_string(event.step) + " held-out loss " + number(event.heldout, 5);
    refresh(false);
}

void ProgressPrinter::show(const LayerFinished& event)
{
    m_detail = "layer " + std::to_string(event.layer.value);
    if (event.relativeErrorAfter)
        m_detail +=
            " error " +
            (event.relativeErrorBefore ? number(event.relativeErrorBefore, 3) + " > " : "") +
            number(event.relativeErrorAfter, 3);
    if (event.keptConverted)
        m_detail += " (kept as converted)";
    refresh(false);
}

void ProgressPrinter::show(const PromptMeasured& event)
{
    m_drafted += event.drafted;
    m_accepted += event.accepted;
    constexpr double percent = 100;
    if (m_drafted > 0)
        m_detail =
            event.task + ", " +
            number(percent * static_cast<double>(m_accepted) / static_cast<double>(m_drafted), 1) +
            " % accepted";
    refresh(false);
}

void ProgressPrinter::show(const JobMessage& event)
{
    if (event.level == JobMessage::Level::Warning)
        warn(event.text);
    else if (!m_quiet)
        writeLine(event.text);
}

void ProgressPrinter::beginStage(const std::string& stage, int total, const std::string& unit)
{
    endStage(true);
    m_stage = stage;
    m_unit = unit;
    m_total = total;
    m_done = 0;
    m_drafted = m_accepted = 0;
    m_detail.clear();
    m_stageStart = m_lastShown = Clock::now();
    if (m_terminal)
        refresh(true);
}

void ProgressPrinter::endStage(bool succeeded)
{
    if (m_stage.empty())
        return;
    if (!m_quiet)
        writeLine(m_stage + ": " + (succeeded ? "done in " : "ended after ") +
                  duration(secondsBetween(m_stageStart, Clock::now())) +
                  (m_detail.empty() ? "" : ", " + m_detail));
    m_stage.clear();
}

void ProgressPrinter::refresh(bool force)
{
    const Clock::time_point now = Clock::now();
    if (m_quiet || m_stage.empty() ||
        (!force && now - m_lastShown < (m_terminal ? terminalInterval : logInterval)))
        return;
    m_lastShown = now;
    if (!m_terminal) {
        writeLine(stateText());
        return;
    }
    std::fprintf(stderr, "\r\x1b[K%s", stateText().substr(0, terminalWidth() - 1).c_str());
    std::fflush(stderr);
    m_lineShown = true;
}

void ProgressPrinter::writeLine(const std::string& text)
{
    std::fprintf(stderr, "%s%s\n", m_lineShown ? "\r\x1b[K" : "", text.c_str());
    m_lineShown = false;
}

std::string ProgressPrinter::stateText() const
{
    const double elapsed = secondsBetween(m_stageStart, Clock::now());
    std::string text = m_stage + ": ";
    if (m_total > 0) {
        constexpr double percent = 100;
        text += number(percent * m_done / m_total, 0) + " % of " + count(m_total) +
                (m_unit.empty() ? "" : " " + m_unit);
        if (m_done > 0 && elapsed >= 1)
            text += ", " + duration(elapsed * (m_total - m_done) / m_done) + " left";
    } else {
        text += duration(elapsed);
    }
    return m_detail.empty() ? text : text + ", " + m_detail;
}

} // namespace mla::cli
