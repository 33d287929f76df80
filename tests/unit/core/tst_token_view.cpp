// SPDX-License-Identifier: GPL-3.0-or-later
// Texts token by token: marks by hand from the steps, texts of every kind of byte.
#include "core/report/figure_data.h"
#include "core/report/token_view.h"

#include <QTest>

#include "tests/support/token_study.h"

using namespace mla;
using mla::test::addStep;
using mla::test::tokenStudy;

namespace
{

using Marks = std::vector<TokenMark>;
constexpr TokenMark A = TokenMark::Accepted, C = TokenMark::Corrected, B = TokenMark::Bonus,
                    P = TokenMark::Plain;

Marks marksOf(const DraftLine& line)
{
    Marks marks;
    for (const DraftToken& token : line.tokens)
        marks.push_back(token.mark);
    return marks;
}

} // namespace

class TestTokenView : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void marks();
    void choicesAndTexts();
    void sourcesAreGreedyReplays();
    void stepsThatDoNotFit();
    void table();
    void visible_data();
    void visible();
    void lengthsByHand();
};

void TestTokenView::marks()
{
    const StudyData data = tokenStudy();
    const std::vector<TokenSource> sources = tokenSources(data);
    QCOMPARE(sources.size(), std::size_t(1));
    QCOMPARE(sources.front().prompts, 2);
    const TokenText first = tokenText(data, sources.front(), 0);
    QCOMPARE(first.tokens.size(), std::size_t(6));
    QCOMPARE(first.drafts.size(), std::size_t(2));
    QCOMPARE(first.drafts[0].name, std::string("original"));
    QCOMPARE(first.drafts[1].name, std::string("TransMLA 4+2, functional"));
    QVERIFY(marksOf(first.drafts[0]) == Marks({C, C, C, C, C, P}));
    QVERIFY(marksOf(first.drafts[1]) == Marks({A, A, B, C, A, B}));
    const TokenText second = tokenText(data, sources.front(), 1);
    QVERIFY(marksOf(second.drafts[1]) == Marks({C, A, B}));
    QVERIFY(tokenText(data, sources.front(), 2).tokens.empty());
}

void TestTokenView::choicesAndTexts()
{
    const StudyData data = tokenStudy();
    const TokenText text = tokenText(data, tokenSources(data).front(), 0);
    QCOMPARE(text.tokens[0].text, std::string("␣a"));
    QCOMPARE(text.tokens[1].text, std::string("⏎"));
    QCOMPARE(text.tokens[2].text, std::string("#12")); // its text is not in the study
    QCOMPARE(text.tokens[0].choices.size(), std::size_t(3));
    const DraftToken& rejected = text.drafts[1].tokens[3];
    QCOMPARE(rejected.choices.size(), std::size_t(2)); // -1 is none
    QCOMPARE(rejected.choices[0].id, 99);
    QCOMPARE(rejected.choices[0].text, std::string("\\xF0\\x9F"));
    QCOMPARE(rejected.choices[1].probability, .25);
}

void TestTokenView::sourcesAreGreedyReplays()
{
    StudyData data = tokenStudy();
    for (AcceptanceRecord& record : data.acceptance)
        record.temperature = .5;
    QVERIFY(tokenSources(data).empty());
    data = tokenStudy();
    for (AcceptanceRecord& record : data.acceptance)
        record.continuation = "gone";
    QVERIFY(tokenSources(data).empty());
    data = tokenStudy();
    for (AcceptanceRecord& record : data.acceptance)
        record.choices = {}; // as of older studies
    QVERIFY(tokenSources(data).empty());
}

void TestTokenView::stepsThatDoNotFit()
{
    StudyData data = tokenStudy();
    addStep(data.acceptance.front(), 1, 2, 2);
    const TokenText text = tokenText(data, tokenSources(data).front(), 1);
    QCOMPARE(text.drafts.size(), std::size_t(1));
    QCOMPARE(text.drafts.front().run, std::string("original"));
}

void TestTokenView::table()
{
    const StudyData data = tokenStudy();
    const TokenSource source = tokenSources(data).front();
    const Table all = tokenTable(tokenText(data, source, 0), source, 0);
    QCOMPARE(all.columns.size(), std::size_t(9));
    QCOMPARE(all.rows.size(), std::size_t(6));
    QCOMPARE(std::get<std::string>(all.rows[3][6]), std::string("rejected"));
    QCOMPARE(std::get<std::string>(all.rows[3][7]), std::string("\\xF0\\x9F"));
    QCOMPARE(std::get<double>(all.rows[3][8]), 75.0);
}

void TestTokenView::visible_data()
{
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("shown");
    QTest::newRow("plain") << QByteArray("word") << QStringLiteral("word");
    QTest::newRow("space") << QByteArray(" a b") << QStringLiteral("␣a␣b");
    QTest::newRow("lines") << QByteArray("\n\t") << QStringLiteral("⏎⇥");
    QTest::newRow("control") << QByteArray("\x07\x7F") << QStringLiteral("\\x07\\x7F");
    QTest::newRow("multibyte") << QByteArray("é警😀") << QStringLiteral("é警😀");
    QTest::newRow("cut") << QByteArray("a\xE8\xAD") << QStringLiteral("a\\xE8\\xAD");
    QTest::newRow("continuation alone") << QByteArray("\xA6x") << QStringLiteral("\\xA6x");
    QTest::newRow("overlong") << QByteArray("\xC0\xAF") << QStringLiteral("\\xC0\\xAF");
    QTest::newRow("overlong of three")
        << QByteArray("\xE0\x80\xAF") << QStringLiteral("\\xE0\\x80\\xAF");
    QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80") << QStringLiteral("\\xED\\xA0\\x80");
    QTest::newRow("beyond Unicode")
        << QByteArray("\xF4\x90\x80\x80") << QStringLiteral("\\xF4\\x90\\x80\\x80");
    QTest::newRow("nothing") << QByteArray("") << QString();
}

void TestTokenView::visible()
{
    QFETCH(QByteArray, bytes);
    QFETCH(QString, shown);
    QCOMPARE(QString::fromStdString(visibleToken(bytes.toStdString())), shown);
}

/// Of the draft above: matches 1 1 1 0 1 1 | 0 1 1.
/// k = 1: steps at 0, 2 | 0 and 1 end both texts so: text one 0 (1 of 1) 2 (1) 4 (1), 3 steps, 6
/// tokens; text two 0 (0) 1 (1), 2 steps, 3 tokens: 9 tokens in 5 steps.
/// With costs draft 1, plain 4, two tokens 5: seconds 5 x (1 + 5) = 30 against 9 x 4 = 36.
void TestTokenView::lengthsByHand()
{
    StudyData data = tokenStudy();
    std::erase_if(data.acceptance, [](const auto& record) { return record.run == "original"; });
    data.acceptance.front().costs = {1, {4, 5}};
    const std::vector<Figure> figures = draftLengths(data);
    QCOMPARE(figures.size(), std::size_t(2));
    QCOMPARE(figures[0].series.size(), std::size_t(2));
    QCOMPARE(figures[0].series[0].x, std::vector<double>({1}));
    QCOMPARE(figures[0].series[0].y, std::vector<double>({36.0 / 30.0}));
    QCOMPARE(figures[1].series[0].y, std::vector<double>({9.0 / 5.0}));
    for (const Figure& figure : figures) { // the only k is the best
        QCOMPARE(figure.series[1].name, std::string("best k"));
        QCOMPARE(figure.series[1].x, std::vector<double>({1}));
        QCOMPARE(figure.series[1].y, figure.series[0].y);
    }
    data.acceptance.front().costs = {};
    const std::vector<Figure> uncosted = draftLengths(data);
    QCOMPARE(uncosted.size(), std::size_t(1));           // no speed-up without costs
    QCOMPARE(uncosted[0].series.size(), std::size_t(1)); // and no best k
    QCOMPARE(uncosted[0].series[0].x.size(), std::size_t(8));
}

QTEST_APPLESS_MAIN(TestTokenView)
#include "tst_token_view.moc"
