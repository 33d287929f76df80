// SPDX-License-Identifier: GPL-3.0-or-later
// The guide that ships: whole, linked, and short.
#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QTest>
#include <QTextDocument>

#include "widgets/help/help_pages.h"

using namespace mla::ui;

namespace
{

const auto guide = QStringLiteral(MLA_RESOURCES "/help");

QString markdown(const QString& id)
{
    QFile file(guide + "/" + id + ".md");
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString withoutCode(QString text)
{
    static const QRegularExpression code(QStringLiteral("```.*?```|`[^`]*`"),
                                         QRegularExpression::DotMatchesEverythingOption);
    return text.remove(code);
}

/// Every target of a link, of whatever kind.
QStringList linkTargets(const QString& text)
{
    static const QRegularExpression link(QStringLiteral("\\[[^\\]]*\\]\\(([^)]*)\\)"));
    QStringList targets;
    for (auto found = link.globalMatch(text); found.hasNext();)
        targets << found.next().captured(1);
    return targets;
}

} // namespace

class HelpPagesTest : public QObject
{
    Q_OBJECT
private slots:
    void everyPageIsAQuestion_data();
    void everyPageIsAQuestion();
    void indexNamesEveryPage();
    void picturesAreNamedAndUsed();
};

void HelpPagesTest::everyPageIsAQuestion_data()
{
    QTest::addColumn<QString>("id");
    const QStringList files = QDir(guide).entryList({"*.md"});
    QVERIFY(files.size() >= 18);
    for (const QString& file : files)
        QTest::newRow(qPrintable(file)) << file.chopped(3);
}

void HelpPagesTest::everyPageIsAQuestion()
{
    QFETCH(const QString, id);
    const QString text = markdown(id);
    QVERIFY2(text.startsWith("# "), "a page begins with its question");
    QVERIFY(text.section('\n', 0, 0).endsWith('?'));
    const auto lines = text.count('\n');
    QVERIFY2(lines >= 20 && lines <= 60, qPrintable(QString::number(lines)));
    for (const QString& target : linkTargets(withoutCode(text))) {
        if (target.startsWith("https://"))
            continue;
        const bool known = target.endsWith(".md") || target.startsWith("pictures/");
        QVERIFY2(known && QFile::exists(guide + "/" + target), qPrintable(target));
    }
    QTextDocument document; // an unclosed mark would show as text
    document.setMarkdown(withoutCode(text));
    const QString shown = document.toPlainText();
    QVERIFY2(!shown.contains("`") && !shown.contains("**") && !shown.contains("]("),
             qPrintable(shown));
}

void HelpPagesTest::indexNamesEveryPage()
{
    QStringList listed = linkedHelpPages(markdown(helpIndex)) << helpIndex;
    QStringList there;
    for (const HelpPage& page : readHelpPages(guide)) {
        there << page.id;
        QVERIFY2(!page.text.isEmpty(), qPrintable(page.id));
        // The list of the index words each question as its page does.
        QVERIFY2(page.id == helpIndex ||
                     markdown(helpIndex).contains("- [" + page.title + "](" + page.id + ".md)"),
                 qPrintable(page.title));
    }
    listed.sort();
    there.sort();
    QCOMPARE(listed, there);
}

/// Each has words for those who do not see it.
void HelpPagesTest::picturesAreNamedAndUsed()
{
    static const QRegularExpression picture(
        QStringLiteral("!\\[([^\\]]*)\\]\\(pictures/([^)]*)\\)"));
    QStringList used;
    for (const HelpPage& page : readHelpPages(guide))
        for (auto found = picture.globalMatch(markdown(page.id)); found.hasNext();) {
            const auto match = found.next();
            QVERIFY2(match.captured(1).size() > 20, qPrintable(page.id));
            used << match.captured(2);
        }
    used.sort();
    QCOMPARE(used, QDir(guide + "/pictures").entryList(QDir::Files, QDir::Name));
    QVERIFY(used.size() >= 10);
}

QTEST_MAIN(HelpPagesTest)
#include "tst_help_pages.moc"
