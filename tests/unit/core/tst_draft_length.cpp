// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/draft_length.h"

#include <QTest>

using namespace mla;

class DraftLengthTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void byHand();
    void sampledByHand();
    void withoutCosts();
    void bestIsTheFastest();
};

/// Six tokens that match y y n y y y. k = 1: steps at 0, 2, 3 and 5 (plain): accepted 1, 0, 1.
/// k = 2: steps at 0 (accepts 2), 3 (accepts 2).
void DraftLengthTest::byHand()
{
    const std::vector<std::vector<double>> texts = {{1, 1, 0, 1, 1, 1}};
    const std::vector<double> verify = {4, 5, 6};
    const auto lengths = sweepDraftLengths(texts, 2, /*draftCost=*/1, verify);
    QCOMPARE(lengths.size(), std::size_t{2});
    QCOMPARE(lengths[0].k, 1);
    QCOMPARE(lengths[0].acceptanceRate, 2.0 / 3);
    QCOMPARE(lengths[0].meanAcceptanceLength, 1 + 2.0 / 3);
    QCOMPARE(*lengths[0].speedup, 6 * 4 / (3 * (1 + 5.0) + 4));
    QCOMPARE(lengths[1].acceptanceRate, 1.0);
    QCOMPARE(lengths[1].meanAcceptanceLength, 3.0);
    QCOMPARE(*lengths[1].speedup, 6 * 4 / (2 * (2 + 6.0)));
}

/// Two tokens, the first accepted with .5: one step that drafts one token, then a plain one half
/// of the time.
void DraftLengthTest::sampledByHand()
{
    const std::vector<std::vector<double>> texts = {{0.5, 0.9}};
    const std::vector<double> verify = {2, 3};
    const auto lengths = sweepDraftLengths(texts, 1, 1, verify);
    QCOMPARE(lengths[0].acceptanceRate, 0.5);
    QCOMPARE(*lengths[0].speedup, 2 * 2 / (1 + 3.0 + 0.5 * 2));
}

void DraftLengthTest::withoutCosts()
{
    const std::vector<std::vector<double>> texts = {{1, 1, 1}};
    QVERIFY(!sweepDraftLengths(texts, 1, 0, {})[0].speedup);
    const std::vector<double> shorter = {1, 1};
    const auto lengths = sweepDraftLengths(texts, 2, 1, shorter);
    QVERIFY(lengths[0].speedup && !lengths[1].speedup); // k = 2 needs the cost of three tokens
    QVERIFY(!bestDraftLength(sweepDraftLengths(texts, 2, 0, {})));
    QVERIFY(sweepDraftLengths(texts, 0, 1, shorter).empty());
}

void DraftLengthTest::bestIsTheFastest()
{
    const std::vector<DraftLength> lengths = {{1, .5, 1, 1.5}, {2, .5, 1, 2.5}, {3, .5, 1, 2.5}};
    QCOMPARE(*bestDraftLength(lengths), 2);
}

QTEST_APPLESS_MAIN(DraftLengthTest)
#include "tst_draft_length.moc"
