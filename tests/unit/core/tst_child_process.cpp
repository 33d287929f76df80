// SPDX-License-Identifier: GPL-3.0-or-later
// Child processes with the programs every system has: lines both ways, and every way to end badly.
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/backends/child_process.h"

#include <nlohmann/json.hpp>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace std::chrono_literals;

namespace
{

ChildCommand shell(const std::string& script)
{
    return {"/bin/sh", {"-c", script}, {}};
}

ChildProcess started(const ChildCommand& command)
{
    Result<ChildProcess> child = ChildProcess::start(command);
    if (!child)
        throw std::runtime_error(child.error().text());
    return std::move(*child);
}

/// Neither running nor a zombie: waited for, and its number free.
bool vanished(int pid)
{
    return ::kill(pid, 0) != 0 && errno == ESRCH;
}

bool vanishesSoon(int pid)
{
    return QTest::qWaitFor([pid] { return vanished(pid); }, 5000);
}

bool contains(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestChildProcess : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void linesComeBack();
    void jsonComesBack();
    void longLine();
    void manyLinesBeforeOneIsRead();
    void lastLineWithoutNewline();
    void environmentAndArguments();
    void missingProgram_data();
    void missingProgram();
    void childThatDies();
    void childKilledBySignal();
    void childThatStopsReading();
    void childThatNeverAnswers();
    void childThatClosesItsOutputAndStays();
    void notJson();
    void cancelled();
    void cancelledWhileWriting();
    void childThatIgnoresTerm();
    void grandchildrenEndToo();
    void grandchildKeepsTheStreams();
    void finishWaits();
    void finishReportsFailure();
    void errorLinesAreTheLastOnes();
    void progressBarsAreOneLine();
    void noFileIsInherited();
    void movedChildIsTheSame();

private:
    JobContext m_job;
};

void TestChildProcess::linesComeBack()
{
    ChildProcess cat = started({"cat", {}, {}});
    for (const std::string text : {"one", "", "two words", "größer 你好"}) {
        QVERIFY(cat.writeLine(m_job, text).ok());
        const auto line = cat.readLine(m_job, 10s);
        QVERIFY(line.ok() && line->has_value());
        QCOMPARE(**line, text);
    }
    const int pid = cat.pid();
    QVERIFY(cat.finish(m_job, 10s).ok());
    QCOMPARE(cat.pid(), -1);
    QVERIFY(vanished(pid));
    const auto end = cat.readLine(m_job, 10s);
    QVERIFY(end.ok() && !end->has_value());
}

void TestChildProcess::jsonComesBack()
{
    ChildProcess cat = started({"cat", {}, {}});
    const nlohmann::json value = {{"ids", {1, 2, 3}}, {"text", "line\nbreak \"quoted\" ü"}};
    QVERIFY(cat.writeJson(m_job, value).ok());
    const auto back = cat.readJson(m_job, 10s);
    QVERIFY(back.ok());
    QVERIFY(*back == value);
}

/// Longer than a pipe holds in both directions at once: neither side may wait for the other.
void TestChildProcess::longLine()
{
    ChildProcess cat = started({"cat", {}, {}});
    std::string text(5 << 20, 'a');
    for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<char>('a' + i % 23);
    QVERIFY(cat.writeLine(m_job, text, 60s).ok());
    const auto line = cat.readLine(m_job, 60s);
    QVERIFY(line.ok() && line->has_value());
    QVERIFY(**line == text);
}

void TestChildProcess::manyLinesBeforeOneIsRead()
{
    constexpr int count = 200000;
    ChildProcess cat = started({"cat", {}, {}});
    std::string text;
    for (int i = 0; i < count; ++i)
        text += std::to_string(i) + (i + 1 < count ? "\n" : "");
    QVERIFY(cat.writeLine(m_job, text, 60s).ok());
    for (int i = 0; i < count; ++i) {
        const auto line = cat.readLine(m_job, 60s);
        QVERIFY(line.ok() && line->has_value());
        QVERIFY(**line == std::to_string(i));
    }
}

void TestChildProcess::lastLineWithoutNewline()
{
    ChildProcess child = started(shell("printf 'a\\nb'"));
    QCOMPARE(**child.readLine(m_job, 10s), std::string("a"));
    QCOMPARE(**child.readLine(m_job, 10s), std::string("b"));
    QVERIFY(!child.readLine(m_job, 10s)->has_value());
}

void TestChildProcess::environmentAndArguments()
{
    qputenv("MLA_TEST_KEPT", "kept");
    qputenv("MLA_TEST_CHANGED", "old");
    ChildCommand command = shell("echo \"$MLA_TEST_KEPT $MLA_TEST_CHANGED $1\"");
    command.arguments.insert(command.arguments.end(), {"sh", "a $HOME; exit 1"});
    command.environment["MLA_TEST_CHANGED"] = "new";
    ChildProcess child = started(command);
    // Arguments are passed as they are: no shell of ours looks at them.
    QCOMPARE(**child.readLine(m_job, 10s), std::string("kept new a $HOME; exit 1"));
}

void TestChildProcess::missingProgram_data()
{
    QTest::addColumn<QString>("program");
    QTest::newRow("path") << "/no/such/program";
    QTest::newRow("name") << "mla-no-such-program";
    QTest::newRow("folder") << "/tmp";
    QTest::newRow("not executable") << "/etc/passwd";
}

void TestChildProcess::missingProgram()
{
    QFETCH(QString, program);
    const auto child = ChildProcess::start({program.toStdString(), {}, {}});
    QVERIFY(!child.ok());
    QCOMPARE(child.error().code, ErrorCode::BadInput);
    QVERIFY(contains(child.error().text(), program.toUtf8()));
}

void TestChildProcess::childThatDies()
{
    ChildProcess child = started(shell("read line; echo 'what went wrong' >&2; exit 7"));
    const int pid = child.pid();
    QVERIFY(child.writeLine(m_job, "go").ok());
    const auto answer = child.readJson(m_job, 10s);
    QVERIFY(!answer.ok());
    QCOMPARE(answer.error().code, ErrorCode::ComputeFailed);
    for (const char* part : {"sh", "ended before it answered", "exit status 7", "what went wrong"})
        QVERIFY2(contains(answer.error().message, part), answer.error().message.c_str());
    QVERIFY(vanished(pid));
    QVERIFY(!child.writeLine(m_job, "more").ok()); // and no SIGPIPE
}

void TestChildProcess::childKilledBySignal()
{
    ChildProcess child = started(shell("kill -9 $$"));
    const auto answer = child.readJson(m_job, 10s);
    QVERIFY(!answer.ok());
    QVERIFY2(contains(answer.error().message, "Killed"), answer.error().message.c_str());
}

void TestChildProcess::childThatStopsReading()
{
    ChildProcess child = started(shell("exec <&-; sleep 60"));
    QTest::qWait(200);
    const auto status = child.writeLine(m_job, std::string(1 << 20, 'x'), 20s);
    QVERIFY(!status.ok());
    QVERIFY(contains(status.error().message, "before it read its input"));
}

void TestChildProcess::childThatNeverAnswers()
{
    ChildProcess child = started(shell("sleep 60"));
    const int pid = child.pid();
    QElapsedTimer timer;
    timer.start();
    const auto answer = child.readJson(m_job, 300ms);
    QVERIFY(!answer.ok());
    QCOMPARE(answer.error().code, ErrorCode::ComputeFailed);
    QVERIFY(contains(answer.error().message, "no answer in time"));
    QVERIFY(timer.elapsed() >= 300 && timer.elapsed() < 20000);
    QVERIFY(vanished(pid));
}

void TestChildProcess::childThatClosesItsOutputAndStays()
{
    ChildProcess child = started(shell("exec >&-; sleep 60"));
    const int pid = child.pid();
    const auto answer = child.readJson(m_job, 20s);
    QVERIFY(!answer.ok());
    QVERIFY(contains(answer.error().message, "ended before it answered"));
    QVERIFY(vanished(pid));
}

void TestChildProcess::notJson()
{
    ChildProcess child = started(shell("echo 'Loading weights: 100%'; sleep 60"));
    const auto answer = child.readJson(m_job, 10s);
    QVERIFY(!answer.ok());
    QVERIFY(contains(answer.error().message, "not JSON"));
    QVERIFY(contains(answer.error().message, "Loading weights"));
}

void TestChildProcess::cancelled()
{
    ChildProcess child = started(shell("sleep 60"));
    const int pid = child.pid();
    std::stop_source stop;
    JobContext job(stop.get_token(), {});
    QElapsedTimer timer;
    timer.start();
    const std::jthread user([&stop] {
        std::this_thread::sleep_for(200ms);
        stop.request_stop();
    });
    const auto answer = child.readLine(job, ChildProcess::unlimited);
    QVERIFY(!answer.ok());
    QCOMPARE(answer.error().code, ErrorCode::Cancelled);
    QVERIFY(timer.elapsed() < 20000);
    QVERIFY(vanished(pid));
}

void TestChildProcess::cancelledWhileWriting()
{
    ChildProcess child = started(shell("sleep 60"));
    std::stop_source stop;
    JobContext job(stop.get_token(), {});
    const std::jthread user([&stop] {
        std::this_thread::sleep_for(200ms);
        stop.request_stop();
    });
    const auto status = child.writeLine(job, std::string(1 << 20, 'x'));
    QVERIFY(!status.ok());
    QCOMPARE(status.error().code, ErrorCode::Cancelled);
}

void TestChildProcess::childThatIgnoresTerm()
{
    int pid = -1;
    QElapsedTimer timer;
    {
        ChildProcess child = started(shell("trap '' TERM; echo ready; while :; do sleep 1; done"));
        pid = child.pid();
        QCOMPARE(**child.readLine(m_job, 10s), std::string("ready"));
        timer.start();
    }
    QVERIFY(vanished(pid));
    QVERIFY(timer.elapsed() < 20000);
}

void TestChildProcess::grandchildrenEndToo()
{
    ChildProcess child = started(shell("trap '' TERM; (trap '' TERM; sleep 77) & echo $!; wait"));
    const auto line = child.readLine(m_job, 10s);
    QVERIFY(line.ok() && line->has_value());
    const int grandchild = std::stoi(**line);
    QVERIFY(!vanished(grandchild));
    child.end();
    // The system's first process collects it; where there is none it stays a zombie.
    const auto ended = [grandchild] {
        std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
        std::string text;
        return !std::getline(stat, text) || contains(text, ") Z ");
    };
    QVERIFY(QTest::qWaitFor(ended, 5000));
}

/// The child is gone, but what it started holds its output open: that is an end all the same.
void TestChildProcess::grandchildKeepsTheStreams()
{
    ChildProcess child = started(shell("sleep 60 & echo last; exit 3"));
    QCOMPARE(**child.readLine(m_job, 10s), std::string("last"));
    QElapsedTimer timer;
    timer.start();
    const auto answer = child.readJson(m_job, 30s);
    QVERIFY(!answer.ok());
    QVERIFY2(contains(answer.error().message, "exit status 3"), answer.error().message.c_str());
    QVERIFY(timer.elapsed() < 20000);
}

void TestChildProcess::finishWaits()
{
    ChildProcess child = started(shell("cat >/dev/null; sleep 0.3; yes | head -c 300000"));
    QVERIFY(child.finish(m_job, 20s).ok()); // though nobody reads what it says at the end
}

void TestChildProcess::finishReportsFailure()
{
    ChildProcess child = started(shell("cat >/dev/null; echo 'no luck' >&2; exit 2"));
    const auto status = child.finish(m_job, 20s);
    QVERIFY(!status.ok());
    QVERIFY2(contains(status.error().message, "exit status 2"), status.error().message.c_str());
    QVERIFY2(contains(status.error().message, "no luck"), status.error().message.c_str());
}

void TestChildProcess::errorLinesAreTheLastOnes()
{
    ChildProcess child = started(shell("i=1; while [ $i -le 3000 ]; do echo \"line $i\" >&2; "
                                       "i=$((i+1)); done; printf 'tail\\033[31m' >&2; echo done"));
    QCOMPARE(**child.readLine(m_job, 30s), std::string("done"));
    QVERIFY(child.finish(m_job, 20s).ok());
    const std::vector<std::string> lines = child.recentErrors();
    QCOMPARE(lines.size(), std::size_t{20});
    QCOMPARE(lines.back(), std::string("tail[31m")); // no control characters in messages
    QCOMPARE(lines[18], std::string("line 3000"));
}

void TestChildProcess::progressBarsAreOneLine()
{
    ChildProcess child = started(shell("printf ' 10%%\\r 50%%\\r100%%\\nend\\r\\n' >&2"));
    QVERIFY(child.finish(m_job, 20s).ok());
    QCOMPARE(child.recentErrors(), (std::vector<std::string>{"100%", "end"}));
}

void TestChildProcess::noFileIsInherited()
{
    const int held = ::open("/etc/passwd", O_RDONLY); // without O_CLOEXEC
    QVERIFY(held > 2);
    ChildProcess child = started(shell("ls -l /proc/self/fd | grep -c passwd"));
    QCOMPARE(**child.readLine(m_job, 10s), std::string("0"));
    ::close(held);
}

void TestChildProcess::movedChildIsTheSame()
{
    ChildProcess first = started({"cat", {}, {}});
    const int pid = first.pid();
    ChildProcess second = std::move(first);
    QCOMPARE(second.pid(), pid);
    second = started({"cat", {}, {}});
    QVERIFY(second.pid() != pid);
    QVERIFY(second.writeLine(m_job, "x").ok());
    QCOMPARE(**second.readLine(m_job, 10s), std::string("x"));
    first.end(); // empty or the first child, either way in order
}

QTEST_GUILESS_MAIN(TestChildProcess)
#include "tst_child_process.moc"
