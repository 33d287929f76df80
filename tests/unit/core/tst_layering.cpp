// SPDX-License-Identifier: GPL-3.0-or-later
// The dependency rules of ARCHITECTURE.md, read off the sources themselves.
#include <QDirIterator>
#include <QFile>
#include <QHash>
#include <QRegularExpression>
#include <QSet>
#include <QTest>

namespace
{

const QDir root(QStringLiteral(MLA_TEST_DATA "/.."));

QStringList filesBelow(const QString& folder, const QStringList& patterns)
{
    QStringList files;
    QDirIterator walk(root.filePath(folder), patterns, QDir::Files, QDirIterator::Subdirectories);
    while (walk.hasNext())
        files << root.relativeFilePath(walk.next());
    files.sort();
    return files;
}

QStringList sourcesBelow(const QString& folder)
{
    return filesBelow(folder, {QStringLiteral("*.cpp"), QStringLiteral("*.h")});
}

QStringList linesOf(const QString& path)
{
    QFile file(root.filePath(path));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'));
}

/// What `path` includes, as written: "core/base/result.h" or "<vector>".
QStringList includesOf(const QString& path)
{
    static QHash<QString, QStringList> known;
    const auto found = known.constFind(path);
    if (found != known.constEnd())
        return *found;
    static const QRegularExpression pattern(
        QStringLiteral("^\\s*#\\s*include\\s*(?:\"([^\"]+)\"|(<[^>]+>))"));
    QStringList includes;
    for (const QString& line : linesOf(path)) {
        const QRegularExpressionMatch match = pattern.match(line);
        if (match.hasMatch())
            includes << match.captured(match.captured(1).isEmpty() ? 2 : 1);
    }
    return known[path] = includes;
}

/// The way from `path` to an include that matches `forbidden`, as "a.h > b.h > <x>"; empty if none.
QString wayTo(const QRegularExpression& forbidden, const QString& path, QSet<QString>& seen)
{
    seen.insert(path);
    for (const QString& include : includesOf(path)) {
        if (forbidden.match(include).hasMatch())
            return path + QStringLiteral(" > ") + include;
        if (seen.contains(include) || !root.exists(include))
            continue;
        const QString rest = wayTo(forbidden, include, seen);
        if (!rest.isEmpty())
            return path + QStringLiteral(" > ") + rest;
    }
    return {};
}

QStringList waysTo(const QRegularExpression& forbidden, const QStringList& files)
{
    QStringList ways;
    for (const QString& file : files) {
        QSet<QString> seen;
        const QString way = wayTo(forbidden, file, seen);
        if (!way.isEmpty())
            ways << way;
    }
    return ways;
}

/// A failure that lists every finding.
void expectNone(const QStringList& findings)
{
    QVERIFY2(findings.isEmpty(), qPrintable(findings.join(QLatin1Char('\n'))));
}

const QRegularExpression qt(QStringLiteral("^<?([Qq]t?[A-Z]\\w*(/|>|$)|qcustomplot\\.h)"));
const QRegularExpression torchOrHdf5(QStringLiteral("^<?(torch|ATen|c10|caffe2|hdf5|H5)"));

} // namespace

class TestLayering : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void everyFileNamesItsLicence();
    void coreAndCommandLineAreFreeOfQt();
    void corePrintsNothing();
    void windowsAreFreeOfTorchAndHdf5();
    void layersPointDownwards_data();
    void layersPointDownwards();
    void coreFoldersKeepTheirOrder();
    void onlyTheStoreKnowsHdf5();
};

void TestLayering::initTestCase()
{
    for (const char* folder : {"core", "widgets", "app/cli", "app/workbench", "tests"})
        QVERIFY2(sourcesBelow(QLatin1String(folder)).size() > 1, folder);
}

void TestLayering::everyFileNamesItsLicence()
{
    const QStringList patterns = {QStringLiteral("*.cpp"), QStringLiteral("*.h"),
                                  QStringLiteral("*.py"), QStringLiteral("*.sh")};
    QStringList unmarked;
    for (const char* folder : {"core", "widgets", "app", "tests", "resources", "installer"})
        for (const QString& file : filesBelow(QLatin1String(folder), patterns)) {
            // A script's first line names its interpreter.
            const QString head = linesOf(file).mid(0, 2).join(QLatin1Char('\n'));
            if (!head.contains(QLatin1String("SPDX-License-Identifier: GPL-3.0-or-later")))
                unmarked << file;
        }
    expectNone(unmarked);
}

void TestLayering::coreAndCommandLineAreFreeOfQt()
{
    expectNone(waysTo(qt, sourcesBelow(QStringLiteral("core"))));
    expectNone(waysTo(qt, sourcesBelow(QStringLiteral("app/cli"))));
}

void TestLayering::corePrintsNothing()
{
    static const QRegularExpression printing(QStringLiteral(
        "std::(cout|cerr|clog)\\b|(?<![A-Za-z_])(v?f?printf|f?puts|putchar|perror)\\s*\\(|"
        "<iostream>"));
    QStringList found;
    for (const QString& file : sourcesBelow(QStringLiteral("core")))
        for (const QString& line : linesOf(file))
            if (printing.match(line).hasMatch())
                found << file + QStringLiteral(": ") + line.trimmed();
    expectNone(found);
}

void TestLayering::windowsAreFreeOfTorchAndHdf5()
{
    expectNone(waysTo(torchOrHdf5, sourcesBelow(QStringLiteral("widgets"))));
    expectNone(waysTo(torchOrHdf5, sourcesBelow(QStringLiteral("app/workbench"))));
}

void TestLayering::layersPointDownwards_data()
{
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QStringList>("above");
    const auto row = [](const char* folder, const QStringList& above) {
        QTest::newRow(folder) << QString::fromLatin1(folder) << above;
    };
    row("core", {QStringLiteral("widgets/"), QStringLiteral("app/"), QStringLiteral("tests/")});
    row("widgets", {QStringLiteral("app/"), QStringLiteral("tests/")});
    row("app/cli",
        {QStringLiteral("widgets/"), QStringLiteral("app/workbench/"), QStringLiteral("tests/")});
    row("app/workbench", {QStringLiteral("app/cli/"), QStringLiteral("tests/")});
}

void TestLayering::layersPointDownwards()
{
    QFETCH(QString, folder);
    QFETCH(QStringList, above);
    QStringList upward;
    for (const QString& file : sourcesBelow(folder))
        for (const QString& include : includesOf(file))
            for (const QString& layer : above)
                if (include.startsWith(layer))
                    upward << file + QStringLiteral(" > ") + include;
    expectNone(upward);
}

void TestLayering::coreFoldersKeepTheirOrder()
{
    // A folder includes itself and folders of a lower rank. The store ranks above checkpoint/,
    // since finished layers are kept as safetensors files.
    const QHash<QString, int> rank = {
        {QStringLiteral("base"), 0},      {QStringLiteral("checkpoint"), 1},
        {QStringLiteral("store"), 2},     {QStringLiteral("model"), 3},
        {QStringLiteral("calibrate"), 4}, {QStringLiteral("convert"), 4},
        {QStringLiteral("refine"), 4},    {QStringLiteral("evaluate"), 4},
        {QStringLiteral("backends"), 5},  {QStringLiteral("export"), 5},
        {QStringLiteral("report"), 5},    {QStringLiteral("pipeline"), 6}};
    QStringList wrong;
    for (const QString& file : sourcesBelow(QStringLiteral("core"))) {
        const QString mine = file.section(QLatin1Char('/'), 1, 1);
        QVERIFY2(rank.contains(mine), qPrintable(file));
        for (const QString& include : includesOf(file)) {
            if (include.startsWith(QLatin1Char('<')))
                continue;
            const QString other = include.section(QLatin1Char('/'), 1, 1);
            const bool ordered = include.startsWith(QLatin1String("core/")) &&
                                 rank.contains(other) && rank[other] < rank[mine];
            if (other != mine && !ordered)
                wrong << file + QStringLiteral(" > ") + include;
        }
    }
    expectNone(wrong);
}

void TestLayering::onlyTheStoreKnowsHdf5()
{
    static const QRegularExpression hdf5(QStringLiteral("^<?(hdf5|H5)|^core/store/h5"));
    QStringList others;
    for (const char* folder : {"core", "app/cli"})
        for (const QString& file : sourcesBelow(QLatin1String(folder)))
            if (!file.startsWith(QLatin1String("core/store/")))
                for (const QString& include : includesOf(file))
                    if (hdf5.match(include).hasMatch())
                        others << file + QStringLiteral(" > ") + include;
    expectNone(others);
}

QTEST_APPLESS_MAIN(TestLayering)
#include "tst_layering.moc"
