// SPDX-License-Identifier: GPL-3.0-or-later
// What the guide tells to type exists: commands and options in its code, beside the programs' help.
// What it quotes is said by them.
#include <map>

#include <QDir>
#include <QDirIterator>
#include <QRegularExpression>

#include "tests/support/cli_program.h"

using namespace mla::test;

namespace
{

const auto guide = QStringLiteral(MLA_RESOURCES "/help");

/// Code of a page, one command a string: spans, and the lines of blocks with "\" at their ends
/// joined.
QStringList codeOf(const QString& markdown)
{
    static const QRegularExpression block(QStringLiteral("^```(\\w*)\\n(.*?)^```$"),
                                          QRegularExpression::MultilineOption |
                                              QRegularExpression::DotMatchesEverythingOption);
    static const QRegularExpression span(QStringLiteral("`([^`]+)`"));
    QStringList code;
    for (auto found = block.globalMatch(markdown); found.hasNext();) {
        const QRegularExpressionMatch match = found.next();
        if (match.captured(1).isEmpty()) // else Python
            code << match.captured(2).replace("\\\n", " ").split('\n', Qt::SkipEmptyParts);
    }
    for (auto found = span.globalMatch(QString(markdown).remove(block)); found.hasNext();)
        code << found.next().captured(1);
    return code;
}

/// "-o", "--steps"; nothing of what stands in quotes.
QStringList optionsOf(QString command)
{
    static const QRegularExpression quoted(QStringLiteral("\"[^\"]*\""));
    static const QRegularExpression option(QStringLiteral("(?<=^|\\s)--?[A-Za-z][a-z0-9-]*"));
    command.remove(quoted);
    QStringList options;
    for (auto found = option.globalMatch(command); found.hasNext();)
        options << found.next().captured();
    return options;
}

QString readText(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

/// The sources of core and of the command line, with literals that go on in the next line joined.
QString sources()
{
    static const QRegularExpression goesOn(QStringLiteral("\"\\s*\\n\\s*\""));
    QString all;
    for (const char* folder : {"/../core", "/../app/cli"}) {
        QDirIterator files(QStringLiteral(MLA_TEST_DATA) + folder, {"*.cpp", "*.h"}, QDir::Files,
                           QDirIterator::Subdirectories);
        while (files.hasNext())
            all += readText(files.next());
    }
    return all.remove(goesOn);
}

QString helpOf(const QString& program, const QStringList& command)
{
    static std::map<QStringList, QString> known;
    const QStringList key = QStringList{program} + command;
    if (!known.contains(key)) {
        QProcess process;
        process.start(QStringLiteral(MLA_BIN "/") + program, command + QStringList{"--help"});
        const CliResult result = finished(process, 60);
        known[key] = result.exitCode == 0 ? QString::fromUtf8(result.out) : QString();
    }
    return known[key];
}

bool declares(const QString& help, const QString& option)
{
    const QRegularExpression whole("(?<![\\w-])" + QRegularExpression::escape(option) +
                                   "(?![\\w-])");
    return help.contains(whole);
}

} // namespace

class HelpCommandsTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void codeIsRead();
    void whatIsToldExists_data();
    void whatIsToldExists();
    void quotedMessagesAreSaid();

private:
    /// The help that an option of `code` must stand in; "" for another program's command.
    [[nodiscard]] QString helpFor(const QString& code) const;
    QStringList m_commands;
    QString m_every; ///< help of all commands and of the workbench
};

void HelpCommandsTest::initTestCase()
{
    static const QRegularExpression name(QStringLiteral("^  ([a-z][a-z-]+)  "),
                                         QRegularExpression::MultilineOption);
    const QString help = helpOf("mla-draft", {});
    for (auto found = name.globalMatch(help); found.hasNext();)
        m_commands << found.next().captured(1);
    QVERIFY2(m_commands.contains("convert") && m_commands.size() >= 16, qPrintable(help));
    for (const QString& command : m_commands)
        m_every += helpOf("mla-draft", {command});
    m_every += helpOf("mla-workbench", {});
}

void HelpCommandsTest::codeIsRead()
{
    QCOMPARE(codeOf("a `b --c` d\n```\ne \\\n    --f\ng -o h\n```\n```python\ni --j\n```\n"),
             (QStringList{"e      --f", "g -o h", "b --c"}));
    QCOMPARE(optionsOf("x --ab-c D -o E --f \"--g h\" non-option 1-2"),
             (QStringList{"--ab-c", "-o", "--f"}));
    QVERIFY(declares("  -o,--output DIR  text", "--output"));
    QVERIFY(!declares("  --output-all DIR", "--output"));
}

QString HelpCommandsTest::helpFor(const QString& code) const
{
    const QStringList words = code.split(' ', Qt::SkipEmptyParts);
    const QString first = words.value(0), second = words.value(1);
    if (first == "mla-draft")
        return second.isEmpty() || second.startsWith('-') ? helpOf(first, {})
                                                          : helpOf(first, {second});
    if (first == "mla-workbench")
        return helpOf(first, {});
    if (m_commands.contains(first))
        return helpOf("mla-draft", {first});
    return first.startsWith('-') ? m_every : QString();
}

void HelpCommandsTest::whatIsToldExists_data()
{
    QTest::addColumn<QString>("code");
    for (const QString& name : QDir(guide).entryList({"*.md"})) {
        for (const QString& code : codeOf(readText(guide + "/" + name))) {
            const QString first = code.section(' ', 0, 0, QString::SectionSkipEmpty);
            if (first == "mla-draft" || first == "mla-workbench" || first.startsWith('-') ||
                (m_commands.contains(first) && code.contains(" -")))
                QTest::newRow(qPrintable(name + ": " + code)) << code;
        }
    }
}

void HelpCommandsTest::whatIsToldExists()
{
    QFETCH(const QString, code);
    if (code.startsWith("mla-workbench") && !QFile::exists(MLA_BIN "/mla-workbench"))
        QSKIP("the workbench was not built");
    const QString help = helpFor(code);
    QVERIFY2(!help.isEmpty(), "no such command");
    for (const QString& option : optionsOf(code))
        QVERIFY2(declares(help, option), qPrintable(option));
}

/// "…" in a message stands for what differs from case to case.
void HelpCommandsTest::quotedMessagesAreSaid()
{
    static const QRegularExpression row(QStringLiteral("^\\| `([^`]+)` \\|"),
                                        QRegularExpression::MultilineOption);
    const QString said = sources(), page = readText(guide + "/troubleshooting.md");
    int messages = 0;
    for (auto found = row.globalMatch(page); found.hasNext(); ++messages)
        for (const QString& part : found.next().captured(1).split(u'…'))
            QVERIFY2(said.contains(part.trimmed()), qPrintable(part));
    QVERIFY(messages >= 20);
}

QTEST_GUILESS_MAIN(HelpCommandsTest)
#include "tst_help_commands.moc"
