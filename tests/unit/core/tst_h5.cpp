// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <fstream>
#include <limits>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/store/h5.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
namespace fs = std::filesystem;

namespace
{

/// An image with one of everything.
Result<std::string> sample()
{
    MLA_TRY(file, h5::File::create());
    h5::Group& root = file.root();
    MLA_TRY(group, root.create("group"));
    MLA_TRY(inner, group.create("inner"));
    MLA_CHECK(inner.writeScalar<std::int32_t>("answer", 42));
    const std::vector<double> numbers = {1.5, std::numeric_limits<double>::quiet_NaN(), -0.0};
    MLA_CHECK(group.writeVector<double>("numbers", numbers));
    MLA_CHECK(group.writeVector<double>("nothing", {}));
    MLA_CHECK(group.writeVector<std::int64_t>("large", std::vector<std::int64_t>(5000, 7)));
    const std::vector<std::uint8_t> cells = {1, 2, 3, 4, 5, 6};
    MLA_CHECK(group.writeMatrix<std::uint8_t>("matrix", 2, 3, cells));
    MLA_CHECK(group.writeMatrix<std::uint8_t>("flat", 0, 3, {}));
    MLA_CHECK(group.writeText("text", "Grüße 你好 🙂"));
    MLA_CHECK(group.writeText("empty", ""));
    MLA_CHECK(group.writeTexts("texts", {"a", "", "ccc"}));
    MLA_CHECK(group.writeTexts("none", {}));
    MLA_CHECK(group.setTextAttribute("title", "größer"));
    MLA_CHECK(group.setTextAttribute("blank", ""));
    MLA_CHECK(group.setAttribute<std::uint64_t>("seed", ~std::uint64_t{0}));
    MLA_CHECK(group.setAttribute<std::int64_t>("wide", std::int64_t{1} << 40));
    return file.image();
}

} // namespace

class TestH5 : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { QVERIFY(m_folder.isValid()); }
    void roundTrip();
    void imagesAreReproducible();
    void wrongKindsAreNamed();
    void unreadableFiles_data();
    void unreadableFiles();
    void everyTruncationIsAnError();
    void fileHeldForWriting();
    void fileHeldForReading();

private:
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
    QTemporaryDir m_folder;
};

void TestH5::roundTrip()
{
    const auto image = sample();
    QVERIFY2(image.ok(), image.ok() ? "" : image.error().text().c_str());
    QVERIFY(writeFileAtomically(path("a.h5"), image.value()).ok());
    auto file = h5::File::open(path("a.h5"));
    QVERIFY(file.ok());
    const auto names = file->root().subgroups();
    QVERIFY(names.ok());
    QCOMPARE(names.value(), std::vector<std::string>{"group"});
    auto group = file->root().open("group");
    QVERIFY(group.ok());
    auto inner = group->open("inner");
    QVERIFY(inner.ok());
    QCOMPARE(inner->path(), std::string("/group/inner"));
    QCOMPARE(inner->readScalar<std::int32_t>("answer").value(), 42);
    const auto numbers = group->readVector<double>("numbers").value();
    QCOMPARE(numbers.size(), std::size_t{3});
    QCOMPARE(numbers[0], 1.5);
    QVERIFY(std::isnan(numbers[1]));
    QVERIFY(std::signbit(numbers[2]));
    QVERIFY(group->readVector<double>("nothing").value().empty());
    QCOMPARE(group->readVector<std::int64_t>("large").value(), std::vector<std::int64_t>(5000, 7));
    const auto matrix = group->readMatrix<std::uint8_t>("matrix").value();
    QCOMPARE(matrix.rows, std::size_t{2});
    QCOMPARE(matrix.columns, std::size_t{3});
    QCOMPARE(matrix.values, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
    QCOMPARE(group->readMatrix<std::uint8_t>("flat").value().columns, std::size_t{3});
    QCOMPARE(group->readText("text").value(), std::string("Grüße 你好 🙂"));
    QCOMPARE(group->readText("empty").value(), std::string());
    QCOMPARE(group->readTexts("texts").value(), (std::vector<std::string>{"a", "", "ccc"}));
    QVERIFY(group->readTexts("none").value().empty());
    QCOMPARE(group->textAttribute("title").value(), std::string("größer"));
    QCOMPARE(group->textAttribute("blank").value(), std::string());
    QCOMPARE(group->attribute<std::uint64_t>("seed").value(), ~std::uint64_t{0});
    // Integers are numbers too.
    QCOMPARE(group->readMatrix<double>("matrix").value().values[5], 6.0);
}

void TestH5::imagesAreReproducible()
{
    QCOMPARE(sample().value(), sample().value());
}

void TestH5::wrongKindsAreNamed()
{
    QVERIFY(writeFileAtomically(path("b.h5"), sample().value()).ok());
    auto file = h5::File::open(path("b.h5"));
    auto group = file->root().open("group");
    const auto names = [](const auto& result, const char* part) {
        return !result.ok() && result.error().code == ErrorCode::BadInput &&
               result.error().text().find(part) != std::string::npos;
    };
    QVERIFY(names(group->readVector<double>("absent"), "/group/absent"));
    QVERIFY(names(group->readVector<double>("matrix"), "dimensions"));
    QVERIFY(names(group->readVector<double>("texts"), "/group/texts"));
    QVERIFY(names(group->readVector<std::int32_t>("large"), "32 bits"));
    QVERIFY(names(group->readVector<std::int32_t>("numbers"), "integers"));
    QVERIFY(names(group->readText("inner"), "/group/inner"));
    QVERIFY(names(group->open("numbers"), "/group/numbers"));
    QVERIFY(names(group->attribute<double>("absent"), "absent"));
    QVERIFY(names(group->attribute<double>("title"), "title"));
    QVERIFY(names(group->attribute<std::int32_t>("wide"), "out of range"));
    QVERIFY(names(group->textAttribute("seed"), "text"));
    QVERIFY(names(group->create("numbers"), "/group/numbers"));
}

void TestH5::unreadableFiles_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("message");
    std::ofstream(path("empty.h5"));
    std::ofstream(path("text.h5")) << std::string(10000, 'x');
    fs::create_directory(path("folder.h5"));
    QVERIFY(::mkfifo(path("pipe.h5").c_str(), 0600) == 0);
    QTest::newRow("missing") << "missing.h5"
                             << "no such file";
    QTest::newRow("empty") << "empty.h5"
                           << "empty";
    QTest::newRow("text") << "text.h5"
                          << "not an HDF5 file";
    QTest::newRow("folder") << "folder.h5"
                            << "not a regular file";
    QTest::newRow("pipe") << "pipe.h5"
                          << "not a regular file";
}

void TestH5::unreadableFiles()
{
    QFETCH(QString, name);
    QFETCH(QString, message);
    const auto file = h5::File::open(path(qPrintable(name)));
    QVERIFY(!file.ok());
    QCOMPARE(file.error().code, ErrorCode::BadInput);
    const QString text = QString::fromStdString(file.error().text());
    QVERIFY2(text.contains(message) && text.contains(name), qPrintable(text));
}

void TestH5::everyTruncationIsAnError()
{
    const std::string image = sample().value();
    for (std::size_t kept = 0; kept < image.size(); kept += 97) {
        QVERIFY(writeFileAtomically(path("cut.h5"), {image.data(), kept}).ok());
        const auto file = h5::File::open(path("cut.h5"));
        QVERIFY2(!file.ok(), qPrintable(QString::number(kept)));
        QVERIFY(file.error().text().find("cut.h5") != std::string::npos);
    }
}

void TestH5::fileHeldForWriting()
{
    QVERIFY(writeFileAtomically(path("held.h5"), sample().value()).ok());
    const int other = ::open(path("held.h5").c_str(), O_RDWR);
    QVERIFY(::flock(other, LOCK_EX) == 0); // as HDF5 does when it opens for writing
    const auto file = h5::File::open(path("held.h5"));
    ::close(other);
    QVERIFY(!file.ok());
    QVERIFY(file.error().text().find("open for writing") != std::string::npos);
    QVERIFY(h5::File::open(path("held.h5")).ok());
}

void TestH5::fileHeldForReading()
{
    QVERIFY(writeFileAtomically(path("read.h5"), sample().value()).ok());
    const int other = ::open(path("read.h5").c_str(), O_RDONLY);
    QVERIFY(::flock(other, LOCK_SH) == 0);
    const bool opens = h5::File::open(path("read.h5")).ok();
    const bool replaces = writeFileAtomically(path("read.h5"), sample().value()).ok();
    ::close(other);
    QVERIFY(opens && replaces);
}

QTEST_APPLESS_MAIN(TestH5)
#include "tst_h5.moc"
