// SPDX-License-Identifier: GPL-3.0-or-later
// The Checkpoint page in the real window, on the embedded checkpoint.
#include <QFile>
#include <QPushButton>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "app/workbench/main_window.h"
#include "tests/support/window_parts.h"
#include "widgets/models/tensor_tree_model.h"
#include "widgets/pages/checkpoint_page.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::named;

namespace
{

const QString stories = QStringLiteral(MLA_RESOURCES "/demo/stories260K");

} // namespace

class CheckpointDockTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void measuresTheEmbeddedCheckpoint();
    void planOpensTheDialog();
    void errorsStayInTheBar();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
};

void CheckpointDockTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    test::isolateSettings(m_folder->path());
}

void CheckpointDockTest::measuresTheEmbeddedCheckpoint()
{
    MainWindow window(coreServices());
    window.show();
    auto* page = window.findChild<CheckpointPage*>();
    page->openModel(stories);
    auto* view = named<QTreeView>(*page, "Tensors");
    QTRY_COMPARE(view->model()->rowCount(), 7); // embedding, five layers, last norm
    QTest::mouseClick(button(*page, "Compute statistics"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(button(*page, "Compute statistics")->isEnabled(), 20000);
    using M = TensorTreeModel;
    for (int row = 0; row < view->model()->rowCount(); ++row) {
        const QModelIndex index = view->model()->index(row, 0);
        const double least = index.siblingAtColumn(M::Minimum).data(M::valueRole).toDouble();
        const double most = index.siblingAtColumn(M::Maximum).data(M::valueRole).toDouble();
        QVERIFY2(least < most, qPrintable(index.data().toString()));
        QCOMPARE(index.siblingAtColumn(M::NonFinite).data().toString(), QStringLiteral("0"));
    }
    QCOMPARE(window.messages().texts(), QStringList());
}

void CheckpointDockTest::planOpensTheDialog()
{
    MainWindow window(coreServices());
    window.show();
    auto* page = window.findChild<CheckpointPage*>();
    page->openModel(stories);
    QTRY_VERIFY(!page->loading() && button(*page, "Use in a new run…")->isEnabled());
    named<QSpinBox>(*page, "Latent rank r")->setValue(11);
    QTest::mouseClick(button(*page, "Use in a new run…"), Qt::LeftButton);
    auto* dialog = window.findChild<NewRunDialog*>();
    QVERIFY(dialog && dialog->isVisible());
    dialog->setStudy(m_folder->filePath("new.h5"));
    QTRY_VERIFY(dialog->canStart());
    QCOMPARE(dialog->form().checkpoint, stories);
    QVERIFY(dialog->form().transmla.enabled && !dialog->form().mha2mla.enabled);
    QCOMPARE(dialog->form().transmla.settings.kvLoraRank, 11);
}

void CheckpointDockTest::errorsStayInTheBar()
{
    QFile config(m_folder->filePath("config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write("{\"model_type\": \"gpt5\"}");
    config.close();
    MainWindow window(coreServices());
    window.show();
    window.findChild<CheckpointPage*>()->openModel(m_folder->path());
    QTRY_COMPARE(window.messages().texts().size(), 1);
    QVERIFY(window.messages().texts().first().contains("gpt5"));
}

QTEST_MAIN(CheckpointDockTest)
#include "tst_checkpoint_dock.moc"
