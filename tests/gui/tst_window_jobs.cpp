// SPDX-License-Identifier: GPL-3.0-or-later
// Real jobs in the real window when the machine is not as it should be, and what they leave behind.
#include <sys/resource.h>

#include <csignal>

#include <QDir>
#include <QFile>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QThreadPool>

#include "app/workbench/main_window.h"
#include "tests/support/window_parts.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;

namespace
{

/// A small study of the model that ships, for real.
StudyPlan smallPlan(const QTemporaryDir& folder)
{
    StudyPlan plan;
    plan.study = folder.filePath("new.h5").toStdString();
    plan.drafts = folder.filePath("drafts").toStdString();
    plan.checkpoint = MLA_RESOURCES "/demo/stories260K";
    plan.calibration.sequences = 8;
    plan.calibration.length = 32;
    ConvertSettings conversion;
    conversion.converter = "transmla";
    conversion.kvLoraRank = 28;
    conversion.qkRopeHeadDim = 4;
    plan.conversions = {conversion};
    plan.refine.steps = 200;
    plan.refine.batchTokens = 64;
    plan.compute.device = "cpu";
    return plan;
}

/// While it lives, no file may grow beyond `bytes`: writing more fails as on a full disk.
class Room
{
public:
    explicit Room(rlim_t bytes) : m_signal(std::signal(SIGXFSZ, SIG_IGN))
    {
        ::getrlimit(RLIMIT_FSIZE, &m_before);
        const rlimit limit{bytes, m_before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~Room()
    {
        ::setrlimit(RLIMIT_FSIZE, &m_before);
        std::signal(SIGXFSZ, m_signal);
    }
    Q_DISABLE_COPY_MOVE(Room)

private:
    void (*m_signal)(int);
    rlimit m_before{};
};

qsizetype threadsOfThisProcess()
{
    return QDir("/proc/self/task").entryList(QDir::Dirs | QDir::NoDotAndDotDot).size();
}

} // namespace

class WindowJobsTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void fullDiskIsAMessage();
    void absentBackendIsAMessage();
    void noThreadIsLeftBehind();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
};

void WindowJobsTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    test::isolateSettings(m_folder->filePath("settings"));
}

void WindowJobsTest::fullDiskIsAMessage()
{
    MainWindow window(coreServices());
    window.show();
    const StudyPlan plan = smallPlan(*m_folder);
    {
        const Room room(4096);
        window.jobs().start(plan);
        QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 60000);
    }
    QCOMPARE(window.jobs().list().stateOf(1), JobState::Failed);
    QCOMPARE(window.messages().texts().size(), 1);
    const QString log = window.jobs().list().logOf(1);
    QVERIFY2(log.contains("new.h5: cannot write"), qPrintable(log));
    QVERIFY(!QFile::exists(m_folder->filePath("new.h5")));
    QVERIFY(QDir(m_folder->filePath("drafts")).isEmpty());

    // With room again, it goes on.
    QTest::mouseClick(button(window, "Resume"), Qt::LeftButton);
    QTRY_VERIFY(window.jobs().busy());
    QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 300000);
    QVERIFY2(window.jobs().list().stateOf(2) == JobState::Finished,
             qPrintable(window.jobs().list().logOf(2)));
}

void WindowJobsTest::absentBackendIsAMessage()
{
    MainWindow window(coreServices());
    window.show();
    StudyPlan plan = smallPlan(*m_folder);
    plan.accept.tasks = {MLA_RESOURCES "/demo/tasks/animals.jsonl"};
    plan.accept.backend = "vllm";
    plan.accept.method = "speculative";
    plan.compute.python = "/no/python";
    window.jobs().start(plan);
    QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 60000);
    QCOMPARE(window.jobs().list().stateOf(1), JobState::Failed);
    QVERIFY2(window.jobs().list().logOf(1).contains("/no/python"),
             qPrintable(window.jobs().list().logOf(1)));
    QVERIFY(!QFile::exists(m_folder->filePath("drafts"))); // nothing was converted in vain
}

void WindowJobsTest::noThreadIsLeftBehind()
{
    QThreadPool::globalInstance()->setExpiryTimeout(0);
    const auto round = [this](const char* name) {
        MainWindow window(coreServices());
        window.show();
        StudyPlan plan = smallPlan(*m_folder);
        plan.study = m_folder->filePath(QString::fromLatin1(name) + ".h5").toStdString();
        plan.drafts = m_folder->filePath(QString::fromLatin1(name)).toStdString();
        window.jobs().start(plan);
        QTRY_VERIFY_WITH_TIMEOUT(window.jobs().live().active(), 60000);
        QVERIFY(window.jobs().busy()); // it ends with the window
    };
    round("first"); // libraries keep some threads for good
    QTest::qWait(500);
    const qsizetype before = threadsOfThisProcess();
    round("second");
    QTRY_VERIFY2(threadsOfThisProcess() <= before, "the second window left a thread");
}

QTEST_MAIN(WindowJobsTest)
#include "tst_window_jobs.moc"
