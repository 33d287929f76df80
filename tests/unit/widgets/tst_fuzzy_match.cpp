// SPDX-License-Identifier: GPL-3.0-or-later
// What fits a typed text, and which of two names fits better.
#include <QTest>

#include "widgets/common/fuzzy_match.h"

using mla::ui::fuzzyScore;

class FuzzyMatchTest : public QObject
{
    Q_OBJECT
private slots:
    void fits_data();
    void fits();
    void better_data();
    void better();
};

void FuzzyMatchTest::fits_data()
{
    QTest::addColumn<QString>("typed");
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("expected");
    QTest::newRow("nothing typed") << ""
                                   << "Export report…" << true;
    QTest::newRow("only spaces") << "  "
                                 << "Export report…" << true;
    QTest::newRow("the name") << "Export report…"
                              << "Export report…" << true;
    QTest::newRow("letters in order") << "xrp"
                                      << "Export report…" << true;
    QTest::newRow("any case") << "EXPORT"
                              << "Export report…" << true;
    QTest::newRow("beginnings of words") << "ex re"
                                         << "Export report…" << true;
    QTest::newRow("spaces do not matter") << "e x"
                                          << "Export report…" << true;
    QTest::newRow("letters out of order") << "pxe"
                                          << "Export" << false;
    QTest::newRow("a letter too many") << "exportt"
                                       << "Export" << false;
    QTest::newRow("another letter") << "z"
                                    << "Export report…" << false;
    QTest::newRow("a letter used twice") << "oo"
                                         << "Open" << false;
    QTest::newRow("no name") << "a"
                             << "" << false;
    QTest::newRow("neither") << ""
                             << "" << true;
    QTest::newRow("beyond ASCII") << "é"
                                  << "Réglages" << true;
}

void FuzzyMatchTest::fits()
{
    QFETCH(QString, typed);
    QFETCH(QString, name);
    QFETCH(bool, expected);
    QCOMPARE(fuzzyScore(typed, name).has_value(), expected);
}

void FuzzyMatchTest::better_data()
{
    QTest::addColumn<QString>("typed");
    QTest::addColumn<QString>("best");
    QTest::addColumn<QString>("other");
    QTest::newRow("a word's beginning before its inside") << "re"
                                                          << "Export report…"
                                                          << "Acre";
    QTest::newRow("a later word's beginning before letters") << "lay"
                                                             << "Next layer"
                                                             << "Reload any";
    QTest::newRow("a prefix before scattered letters") << "acc"
                                                       << "Acceptance"
                                                       << "Any cached copy";
    QTest::newRow("the first word before a later one") << "re"
                                                       << "Report"
                                                       << "Export report…";
    QTest::newRow("the shorter name") << "study"
                                      << "Study"
                                      << "Study contents";
    QTest::newRow("closer letters before earlier ones") << "ef"
                                                        << "Beef"
                                                        << "Eel and fish";
    QTest::newRow("two words' beginnings") << "o s"
                                           << "Open study…"
                                           << "Also spectra";
    QTest::newRow("an early start among letters") << "pt"
                                                  << "Apt"
                                                  << "Accept";
}

void FuzzyMatchTest::better()
{
    QFETCH(QString, typed);
    QFETCH(QString, best);
    QFETCH(QString, other);
    const auto first = fuzzyScore(typed, best);
    QVERIFY(first);
    const auto second = fuzzyScore(typed, other);
    QVERIFY(second);
    QVERIFY2(*first > *second, qPrintable(QString("%1, %2").arg(*first).arg(*second)));
}

QTEST_MAIN(FuzzyMatchTest)
#include "tst_fuzzy_match.moc"
