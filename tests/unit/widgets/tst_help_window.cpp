// SPDX-License-Identifier: GPL-3.0-or-later
// The guide's window on a small guide of its own, and on the pages that ship.
#include <algorithm>

#include <QDesktopServices>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QScrollBar>
#include <QSplitter>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTextTable>
#include <QToolButton>

#include "tests/support/small_guide.h"
#include "tests/support/window_parts.h"
#include "widgets/common/fonts.h"
#include "widgets/common/theme.h"
#include "widgets/help/help_browser.h"
#include "widgets/help/help_pages.h"
#include "widgets/help/help_window.h"

using namespace mla::ui;
using mla::test::named;

namespace
{

QString selected(const HelpWindow& window)
{
    return named<QListView>(window, "Questions")->currentIndex().data().toString();
}

/// The colour of the first link of the page; invalid if it has none.
QColor linkColor(const HelpWindow& window)
{
    const auto* page = named<HelpBrowser>(window, "Page");
    for (QTextBlock block = page->document()->begin(); block.isValid(); block = block.next())
        for (auto at = block.begin(); !at.atEnd(); ++at)
            if (at.fragment().charFormat().isAnchor())
                return at.fragment().charFormat().foreground().color();
    return {};
}

void followLink(const HelpWindow& window, const QString& url)
{
    emit named<HelpBrowser>(window, "Page")->anchorClicked(QUrl(url));
}

} // namespace

class HelpWindowTest : public QObject
{
    Q_OBJECT
public slots:
    void takeUrl(const QUrl& url) { m_opened << url.toString(); } // in place of a browser
private slots:
    void init();
    void searchFindsPages();
    void linkSelectsItsPage();
    void webLinksGoToTheDesktop();
    void goesBackAndForward();
    void unknownPageIsTheIndex();
    void missingFolderIsSaid_data();
    void missingFolderIsSaid();
    void keysReachSearchAndClose();
    void followsTheme();
    void remembersItsSize();
    void shippedPagesFit();
    void picturesFollowTheWidth();

private:
    [[nodiscard]] QString folder() const { return m_folder->filePath("guide"); }
    std::unique_ptr<QTemporaryDir> m_folder;
    QStringList m_opened;
};

void HelpWindowTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    mla::test::isolateSettings(m_folder->filePath("settings"));
    QVERIFY(mla::test::writeSmallGuide(folder()));
    m_opened.clear();
}

void HelpWindowTest::searchFindsPages()
{
    HelpWindow window(folder());
    window.showPage("doors");
    auto* line = named<QLineEdit>(window, "Search the guide");
    auto* count = named<QLabel>(window, "Pages found");
    QVERIFY(!count->isVisible());
    QTest::keyClicks(line, "axle");
    QCOMPARE(count->text(), QStringLiteral("1 of 4 pages"));
    QCOMPARE(window.currentPage(), QStringLiteral("doors")); // typing leaves the page
    QVERIFY(selected(window).isEmpty());
    QTest::keyClick(line, Qt::Key_Return);
    QCOMPARE(window.currentPage(), QStringLiteral("wheels"));
    QCOMPARE(named<HelpBrowser>(window, "Page")->extraSelections().size(), 1);
    QTest::keyClicks(line, " nowhere");
    QCOMPARE(count->text(), QStringLiteral("No page holds these words."));
    line->clear();
    QVERIFY(!count->isVisible());
    QCOMPARE(selected(window), QStringLiteral("Why do wheels turn?"));
    QVERIFY(named<HelpBrowser>(window, "Page")->extraSelections().isEmpty());
}

void HelpWindowTest::linkSelectsItsPage()
{
    HelpWindow window(folder());
    window.showPage("index");
    QVERIFY(window.isVisible() && window.isWindow() && !window.isModal());
    followLink(window, "wheels.md");
    QCOMPARE(window.currentPage(), QStringLiteral("wheels"));
    QCOMPARE(selected(window), QStringLiteral("Why do wheels turn?"));
    followLink(window, "cellar.md"); // a broken link leads home
    QCOMPARE(window.currentPage(), QStringLiteral("index"));
}

void HelpWindowTest::webLinksGoToTheDesktop()
{
    QDesktopServices::setUrlHandler("https", this, "takeUrl");
    HelpWindow window(folder());
    window.showPage("doors");
    followLink(window, "https://example.org");
    QDesktopServices::unsetUrlHandler("https");
    QCOMPARE(m_opened, QStringList{"https://example.org"});
    QCOMPARE(window.currentPage(), QStringLiteral("doors"));
}

void HelpWindowTest::goesBackAndForward()
{
    HelpWindow window(folder());
    window.showPage("wheels");
    auto* back = mla::test::labelled<QToolButton>(window, "Back");
    auto* forward = mla::test::labelled<QToolButton>(window, "Forward");
    followLink(window, "doors.md");
    QVERIFY(back->isEnabled() && !forward->isEnabled());
    QVERIFY(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_Left, Qt::AltModifier);
    QCOMPARE(selected(window), QStringLiteral("Why do wheels turn?"));
    QTest::keyClick(&window, Qt::Key_Right, Qt::AltModifier);
    QCOMPARE(selected(window), QStringLiteral("How do doors open?"));
    back->click();
    QCOMPARE(window.currentPage(), QStringLiteral("wheels"));
    QTest::keyClick(&window, Qt::Key_Home, Qt::AltModifier);
    QCOMPARE(window.currentPage(), QStringLiteral("index"));
    QVERIFY(!forward->isEnabled());
}

void HelpWindowTest::unknownPageIsTheIndex()
{
    HelpWindow window(folder());
    QCOMPARE(window.currentPage(), QStringLiteral("index"));
    window.showPage("doors");
    window.showPage("cellar");
    QCOMPARE(window.currentPage(), QStringLiteral("index"));
    window.showPage("../guide/doors"); // a name, not a path
    QCOMPARE(window.currentPage(), QStringLiteral("index"));
}

void HelpWindowTest::missingFolderIsSaid_data()
{
    QTest::addColumn<QString>("folder");
    QTest::newRow("none known") << QString();
    QTest::newRow("no folder") << QStringLiteral("/nowhere/guide");
    QTest::newRow("no pages") << QStringLiteral(MLA_RESOURCES "/icons");
}

void HelpWindowTest::missingFolderIsSaid()
{
    QFETCH(const QString, folder);
    HelpWindow window(folder);
    window.showPage("index");
    QVERIFY(mla::test::labelled<QLabel>(window, "The guide is missing")->isVisible());
    QVERIFY(!named<QListView>(window, "Questions")->isVisible());
    QVERIFY(window.currentPage().isEmpty());
    bool says = folder.isEmpty();
    for (const QLabel* label : window.findChildren<QLabel*>())
        says |= label->isVisible() && !folder.isEmpty() && label->text().contains(folder);
    QVERIFY(says);
}

void HelpWindowTest::keysReachSearchAndClose()
{
    HelpWindow window(folder());
    window.showPage("index");
    QVERIFY(QTest::qWaitForWindowActive(&window));
    named<HelpBrowser>(window, "Page")->setFocus();
    QTest::keyClick(&window, Qt::Key_F, Qt::ControlModifier);
    QVERIFY(named<QLineEdit>(window, "Search the guide")->hasFocus());
    QTest::keyClick(&window, Qt::Key_Escape);
    QVERIFY(!window.isVisible());
}

void HelpWindowTest::followsTheme()
{
    applyTheme(*qApp, Theme::Light);
    HelpWindow window(folder());
    window.showPage("doors");
    QCOMPARE(linkColor(window), lightPalette().color(QPalette::Link));
    const auto table = [&] {
        return qobject_cast<QTextTable*>(
            named<HelpBrowser>(window, "Page")->document()->rootFrame()->childFrames().value(0));
    };
    QVERIFY(table());
    QCOMPARE(table()->format().border(), 1.0);
    const QTextBlock code = table()->cellAt(1, 1).firstCursorPosition().block();
    QCOMPARE(code.begin().fragment().charFormat().fontFamilies().toStringList(),
             monospaceFont().families());
    applyTheme(*qApp, Theme::Dark);
    QTRY_COMPARE(linkColor(window), darkPalette().color(QPalette::Link));
    QCOMPARE(table()->format().borderBrush().color().rgb(),
             darkPalette().color(QPalette::PlaceholderText).rgb());
    QCOMPARE(window.currentPage(), QStringLiteral("doors"));
    applyTheme(*qApp, Theme::Light);
}

void HelpWindowTest::remembersItsSize()
{
    const QSize size(700, 500);
    {
        HelpWindow window(folder());
        window.showPage("index");
        window.resize(size);
        window.findChild<QSplitter*>()->setSizes({200, 480});
        window.close();
    }
    HelpWindow again(folder());
    again.showPage("index");
    QCOMPARE(again.size(), size);
    QVERIFY(std::abs(again.findChild<QSplitter*>()->sizes().first() - 200) < 20);
    again.resize(size + QSize(50, 0)); // the program may end while it is open
    auto last = std::make_unique<HelpWindow>(folder());
    last->showPage("index");
    last->resize(size - QSize(50, 0));
    last.reset();
    QCOMPARE(HelpWindow(folder()).size(), size - QSize(50, 0));
}

void HelpWindowTest::shippedPagesFit()
{
    const QString guide = QStringLiteral(MLA_RESOURCES "/help");
    HelpWindow window(guide);
    for (const HelpPage& page : readHelpPages(guide)) {
        window.showPage(page.id);
        QCOMPARE(window.currentPage(), page.id);
        QCOMPARE(selected(window), page.title);
        const auto* shown = named<HelpBrowser>(window, "Page");
        QVERIFY2(shown->horizontalScrollBar()->maximum() == 0, qPrintable(page.id));
    }
}

void HelpWindowTest::picturesFollowTheWidth()
{
    QImage picture(1200, 600, QImage::Format_RGB32);
    picture.fill(Qt::red);
    QVERIFY(picture.save(folder() + "/red.png"));
    QFile page(folder() + "/attic.md");
    QVERIFY(page.open(QIODevice::WriteOnly) && page.write("# Red?\n\n![All red](red.png)\n") > 0);
    page.close();
    HelpWindow window(folder());
    window.showPage("attic");
    QVERIFY(QTest::qWaitForWindowExposed(&window));
    const auto* shown = named<HelpBrowser>(window, "Page");
    /// Length of the longest row of red.
    const auto redWidth = [shown] {
        const QImage grabbed = shown->viewport()->grab().toImage();
        int most = 0;
        for (int y = 0; y < grabbed.height(); ++y) {
            int red = 0;
            for (int x = 0; x < grabbed.width(); ++x)
                red += grabbed.pixelColor(x, y) == Qt::red ? 1 : 0;
            most = std::max(most, red);
        }
        return most;
    };
    const int before = redWidth();
    QVERIFY(before > 300 && before <= shown->viewport()->width());
    window.resize(window.width() - 150, window.height());
    QTRY_COMPARE(redWidth(), before - 150);
    QCOMPARE(shown->horizontalScrollBar()->maximum(), 0);
    window.resize(2000, 900);
    QTRY_COMPARE(redWidth(), 1200); // never larger than it is
}

QTEST_MAIN(HelpWindowTest)
#include "tst_help_window.moc"
