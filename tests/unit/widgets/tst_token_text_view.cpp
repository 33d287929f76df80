// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>

#include "tests/support/token_study.h"
#include "widgets/common/empty_state.h"
#include "widgets/common/fonts.h"
#include "widgets/pages/token_strip.h"
#include "widgets/pages/token_text_view.h"

using namespace mla;
using namespace mla::ui;
using mla::test::tokenStudy;

class TestTokenTextView : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { QVERIFY(loadBundledFonts()); }
    void keyboard();
    void wraps();
    void clickChooses();
    void describes();
    void describesPlaceholders();
    void choosesPrompts();
    void emptyWithoutTexts();

private:
    /// A strip of the first text, shown.
    static void show(TokenStrip& strip, int width)
    {
        const StudyData study = tokenStudy();
        strip.resize(width, 300);
        strip.setTokens(tokenText(study, tokenSources(study).front(), 0));
        strip.show();
        QVERIFY(QTest::qWaitForWindowExposed(&strip));
    }
};

void TestTokenTextView::keyboard()
{
    TokenStrip strip;
    show(strip, 900);
    QCOMPARE(strip.current(), 0);
    QSignalSpy changes(&strip, &TokenStrip::currentChanged);
    QTest::keyClick(&strip, Qt::Key_Left);
    QCOMPARE(strip.current(), 0);
    QTest::keyClick(&strip, Qt::Key_Right);
    QCOMPARE(strip.current(), 1);
    QTest::keyClick(&strip, Qt::Key_End);
    QCOMPARE(strip.current(), 5);
    QTest::keyClick(&strip, Qt::Key_Right);
    QCOMPARE(strip.current(), 5);
    QTest::keyClick(&strip, Qt::Key_Home);
    QCOMPARE(strip.current(), 0);
    QCOMPARE(changes.size(), 3);
}

void TestTokenTextView::wraps()
{
    TokenStrip strip;
    show(strip, 900);
    QCOMPARE(strip.tokenRect(5).top(), strip.tokenRect(0).top());
    const int names = strip.tokenRect(0).left();
    strip.resize(names + strip.tokenRect(2).right() - names + 30, 300);
    QVERIFY(strip.tokenRect(5).top() > strip.tokenRect(0).top());
    QCOMPARE(strip.tokenRect(0).left(), names);
    QTest::keyClick(&strip, Qt::Key_Down);
    QVERIFY(strip.tokenRect(strip.current()).top() > strip.tokenRect(0).top());
    QTest::keyClick(&strip, Qt::Key_Up);
    QCOMPARE(strip.tokenRect(strip.current()).top(), strip.tokenRect(0).top());
}

void TestTokenTextView::clickChooses()
{
    TokenStrip strip;
    show(strip, 900);
    QTest::mouseClick(strip.viewport(), Qt::LeftButton, {}, strip.tokenRect(3).center());
    QCOMPARE(strip.current(), 3);
}

void TestTokenTextView::describes()
{
    TokenStrip strip;
    show(strip, 900);
    const QString words = strip.describe(3);
    QVERIFY2(words.contains(QStringLiteral("Token 4")), qPrintable(words));
    QVERIFY(words.contains(QStringLiteral("TransMLA 4+2, functional: <b>rejected</b>; "
                                          "<code>\\xF0\\x9F</code>&nbsp;75.0&nbsp;%")));
    QVERIFY(strip.describe(0).contains(QStringLiteral("functional: <b>accepted</b>")));
    QVERIFY(strip.describe(6).isEmpty());
}

/// Tokens that look like QString's places are shown as they are.
void TestTokenTextView::describesPlaceholders()
{
    TokenText text;
    text.tokens.push_back({7, "%4", {{7, "%2", .5}}});
    TokenStrip strip;
    strip.setTokens(text);
    QCOMPARE(strip.describe(0), QStringLiteral("<b>Token 1: <code>%4</code></b> (id 7)<br>Target: "
                                               "<code>%2</code>&nbsp;50.0&nbsp;%"));
}

void TestTokenTextView::choosesPrompts()
{
    const StudyData study = tokenStudy();
    TokenTextView view;
    view.setStudy(study);
    auto* strip = view.findChild<TokenStrip*>();
    auto* prompt = view.findChild<QSpinBox*>();
    QCOMPARE(view.findChild<QComboBox*>()->currentText(), QStringLiteral("talk, k = 2, by target"));
    QCOMPARE(prompt->maximum(), 2);
    QCOMPARE(strip->tokens().tokens.size(), std::size_t(6));
    prompt->setValue(2);
    QCOMPARE(strip->tokens().tokens.size(), std::size_t(3));
    view.setStudy(study); // measured anew: the choice stays
    QCOMPARE(prompt->value(), 2);
}

void TestTokenTextView::emptyWithoutTexts()
{
    const StudyData study;
    TokenTextView view;
    view.setStudy(study);
    QVERIFY(view.findChild<EmptyState*>()->isEmpty());
}

QTEST_MAIN(TestTokenTextView)
#include "tst_token_text_view.moc"
