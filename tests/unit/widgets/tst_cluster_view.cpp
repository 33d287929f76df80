// SPDX-License-Identifier: GPL-3.0-or-later
// The list of a cluster's jobs: what it shows, how it is brought up to date, what it asks for.
#include <atomic>
#include <mutex>

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QTest>

#include "tests/support/window_parts.h"
#include "widgets/pages/cluster_view.h"

using namespace mla::ui;
using mla::ClusterJob;
using mla::test::button;
using mla::test::named;

namespace
{

const ClusterJob running{"41_3", "RUNNING", "3:04", "2:00:00", "node7", "grid-measurements"};
const ClusterJob waiting{"42", "PENDING", "0:00", "UNLIMITED", "(Dependency)", "grid-collect"};

/// A cluster under the test's control.
struct Cluster {
    ClusterServices services()
    {
        return {[this]() -> mla::Result<std::vector<ClusterJob>> {
                    const std::scoped_lock lock(mutex);
                    ++asked;
                    if (silent)
                        return mla::computeFailed("Unable to contact slurm controller");
                    return jobs;
                },
                [this](const std::string& id) -> mla::Status {
                    const std::scoped_lock lock(mutex);
                    std::erase_if(jobs, [&](const ClusterJob& job) { return job.id == id; });
                    cancelled.push_back(id);
                    return {};
                }};
    }
    void set(std::vector<ClusterJob> all)
    {
        const std::scoped_lock lock(mutex);
        jobs = std::move(all);
    }
    std::mutex mutex;
    std::vector<ClusterJob> jobs;
    std::vector<std::string> cancelled;
    std::atomic<bool> silent = false;
    std::atomic<int> asked = 0;
};

/// The view's table once it has that many rows; null if it never has.
QTableView* shown(ClusterView& view, int rows)
{
    view.show();
    auto* table = named<QTableView>(view, "Jobs on the cluster");
    const bool filled =
        QTest::qWaitFor([table, rows] { return table->model()->rowCount() == rows; });
    return filled ? table : nullptr;
}

} // namespace

class ClusterViewTest : public QObject
{
    Q_OBJECT
private slots:
    void modelKeepsItsRules();
    void showsWhatTheClusterTells();
    void selectionOutlivesARefresh();
    void errorKeepsTheLastList();
    void cancelsTheCurrentJob();
    void hiddenViewsDoNotAsk();
};

void ClusterViewTest::modelKeepsItsRules()
{
    ClusterJobModel model;
    const QAbstractItemModelTester tester(&model,
                                          QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setJobs({running, waiting});
    model.setJobs({waiting});
    ClusterJob later = waiting;
    later.state = "RUNNING";
    model.setJobs({running, later});
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.idAt(0), QString("42"));
    QCOMPARE(model.index(0, ClusterJobModel::State).data().toString(), QString("running"));
    QCOMPARE(model.idAt(2), QString());
    model.setJobs({});
    QCOMPARE(model.rowCount(), 0);
}

void ClusterViewTest::showsWhatTheClusterTells()
{
    Cluster cluster;
    cluster.set({running, waiting});
    ClusterView view(cluster.services());
    QTableView* table = shown(view, 2);
    QVERIFY(table);
    QVERIFY(table->isVisible());
    QStringList first;
    for (int column = 0; column < ClusterJobModel::Columns; ++column)
        first << table->model()->index(0, column).data().toString();
    QCOMPARE(first,
             QStringList({"41_3", "grid-measurements", "running", "3:04", "2:00:00", "node7"}));
}

void ClusterViewTest::selectionOutlivesARefresh()
{
    Cluster cluster;
    cluster.set({running, waiting});
    ClusterView view(cluster.services());
    QTableView* table = shown(view, 2);
    QVERIFY(table);
    table->setCurrentIndex(table->model()->index(1, 0));
    cluster.set({waiting});
    button(view, "Look again")->click();
    QTRY_COMPARE(table->model()->rowCount(), 1);
    QCOMPARE(table->currentIndex().data().toString(), QString("42"));
}

void ClusterViewTest::errorKeepsTheLastList()
{
    Cluster cluster;
    cluster.set({running});
    ClusterView view(cluster.services());
    QTableView* table = shown(view, 1);
    QVERIFY(table);
    const auto troubled = [&view] {
        for (const QLabel* label : view.findChildren<QLabel*>())
            if (label->isVisible() && label->text().contains("Unable to contact"))
                return true;
        return false;
    };
    cluster.silent = true;
    button(view, "Look again")->click();
    QTRY_VERIFY(troubled());
    QCOMPARE(table->model()->rowCount(), 1);
    cluster.silent = false;
    button(view, "Look again")->click();
    QTRY_VERIFY(!troubled());
}

void ClusterViewTest::cancelsTheCurrentJob()
{
    Cluster cluster;
    cluster.set({running, waiting});
    ClusterView view(cluster.services());
    QTableView* table = shown(view, 2);
    QVERIFY(table);
    auto* cancel = button(view, "Cancel on the cluster");
    QVERIFY(!cancel->isEnabled()); // nothing is chosen
    table->setCurrentIndex(table->model()->index(0, 0));
    QVERIFY(cancel->isEnabled());
    cancel->click();
    QTRY_COMPARE(table->model()->rowCount(), 1);
    QCOMPARE(cluster.cancelled, std::vector<std::string>{"41_3"});
}

void ClusterViewTest::hiddenViewsDoNotAsk()
{
    Cluster cluster;
    ClusterView view(cluster.services());
    QTest::qWait(20);
    QCOMPARE(cluster.asked.load(), 0);
    view.show();
    QTRY_COMPARE(cluster.asked.load(), 1);
}

QTEST_MAIN(ClusterViewTest)
#include "tst_cluster_view.moc"
