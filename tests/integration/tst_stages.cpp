// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity where a conversion loses quality: without rotation, at low rank, refined. What is
// equal by construction must be equal in the study.
#include "core/store/study.h"

#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla;
using namespace mla::test;

class TestStages : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void rotationAloneIsAMatterOfNoRank_data();
    void rotationAloneIsAMatterOfNoRank();
    void refinementsHaveAllFour();

private:
    QTemporaryDir m_dir;
    [[nodiscard]] QString path(const QString& name) const { return m_dir.filePath(name); }
    /// Converts and returns the run's stages; `rank` in latent channels.
    std::map<std::string, StageRecord> convert(const QStringList& converter, int rank)
    {
        const QString name = QStringLiteral("%1-%2").arg(converter.front()).arg(rank);
        const CliResult result = runCli(
            QStringList{"convert", demoCheckpoint(), "-o", path(name), "--converter"} + converter +
            QStringList{"--kv-lora-rank", QString::number(rank), "--sequences", "8", "--length",
                        "32", "--study", path(name + ".h5"), "--overwrite"});
        if (result.exitCode != 0) {
            qWarning("%s", result.text().constData());
            return {};
        }
        const auto study = loadStudy(path(name + ".h5").toStdString());
        return study ? study->runs.back().stages : std::map<std::string, StageRecord>();
    }
};

void TestStages::rotationAloneIsAMatterOfNoRank_data()
{
    QTest::addColumn<QStringList>("converter");
    QTest::addColumn<int>("fullRank");
    // stories260K: 4 KV heads of 8. TransMLA keeps one rotary head of 4 of all 32 key dims: 28
    // nope dims and 32 value dims; MHA2MLA keeps 4 of each head: 16 and 32.
    QTest::newRow("transmla") << QStringList{"transmla", "--qk-rope-head-dim", "4"} << 60;
    QTest::newRow("mha2mla") << QStringList{"mha2mla", "--qk-rope-head-dim", "4"} << 48;
}

void TestStages::rotationAloneIsAMatterOfNoRank()
{
    QFETCH(QStringList, converter);
    QFETCH(int, fullRank);
    constexpr double rounding = 1e-3;
    auto low = convert(converter, 8);
    auto full = convert(converter, fullRank);
    QCOMPARE(low.size(), std::size_t(3));
    QCOMPARE(full.size(), std::size_t(3));
    QVERIFY(low["rope_removed"].perplexity > low["original"].perplexity);
    QVERIFY(low["low_rank"].perplexity > low["rope_removed"].perplexity);
    QVERIFY(std::abs(low["rope_removed"].perplexity / full["rope_removed"].perplexity - 1) <
            rounding);
    QVERIFY(std::abs(low["rope_removed"].kl - full["rope_removed"].kl) < rounding);
    QVERIFY(std::abs(full["low_rank"].perplexity / full["rope_removed"].perplexity - 1) < rounding);
}

void TestStages::refinementsHaveAllFour()
{
    auto converted = convert({"transmla", "--qk-rope-head-dim", "4"}, 8);
    QCOMPARE(converted.size(), std::size_t(3));
    const CliResult result = runCli({"refine", path("transmla-8"), "--original", demoCheckpoint(),
                                     "-o", path("f"), "--objective", "functional", "--steps", "20",
                                     "--batch-tokens", "128", "--study", path("transmla-8.h5")});
    QVERIFY2(result.exitCode == 0, result.text());
    const auto study = loadStudy(path("transmla-8.h5").toStdString());
    QVERIFY(bool(study));
    auto refined = study->runs.back().stages;
    QCOMPARE(study->runs.back().variant, std::string("functional"));
    QCOMPARE(refined.size(), std::size_t(4));
    for (const char* stage : {"rope_removed", "low_rank"})
        QCOMPARE(refined[stage].perplexity, converted[stage].perplexity);
    QVERIFY(refined["refined"].perplexity < refined["low_rank"].perplexity);
}

QTEST_APPLESS_MAIN(TestStages)
#include "tst_stages.moc"
