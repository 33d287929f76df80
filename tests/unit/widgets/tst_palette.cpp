// SPDX-License-Identifier: GPL-3.0-or-later
// Colours stand out from their background and stay apart, also for people with a colour-vision
// deficiency.
#include <array>
#include <cmath>

#include <QtTest>

#include "widgets/common/fonts.h"
#include "widgets/common/palette.h"
#include "widgets/common/theme.h"

using namespace mla::ui;

namespace
{

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

// Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
const std::array<Matrix, 4> kVision{{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                     {{{0.152286, 1.052583, -0.204868},
                                       {0.114503, 0.786281, 0.099216},
                                       {-0.003882, -0.048116, 1.051998}}},
                                     {{{0.367322, 0.860646, -0.227968},
                                       {0.280085, 0.672501, 0.047413},
                                       {-0.011820, 0.042940, 0.968881}}},
                                     {{{1.255528, -0.076749, -0.178779},
                                       {-0.078411, 0.930809, 0.147602},
                                       {0.004733, 0.691367, 0.303900}}}}};

double linear(double c)
{
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

Triple seen(const QColor& color, const Matrix& vision)
{
    const Triple rgb{linear(color.redF()), linear(color.greenF()), linear(color.blueF())};
    Triple out{};
    for (std::size_t i = 0; i < 3; ++i)
        out[i] = std::clamp(vision[i][0] * rgb[0] + vision[i][1] * rgb[1] + vision[i][2] * rgb[2],
                            0.0, 1.0);
    return out;
}

Triple lab(const Triple& rgb)
{
    const double x = 0.4124564 * rgb[0] + 0.3575761 * rgb[1] + 0.1804375 * rgb[2];
    const double y = 0.2126729 * rgb[0] + 0.7151522 * rgb[1] + 0.0721750 * rgb[2];
    const double z = 0.0193339 * rgb[0] + 0.1191920 * rgb[1] + 0.9503041 * rgb[2];
    const auto f = [](double t) {
        return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
    };
    return {116 * f(y) - 16, 500 * (f(x / 0.95047) - f(y)), 200 * (f(y) - f(z / 1.08883))};
}

/// CIEDE2000 (Sharma, Wu, Dalal 2005).
double difference(const Triple& first, const Triple& second)
{
    const double degree = std::acos(-1.0) / 180;
    const auto seventh = [](double c) {
        return std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25, 7)));
    };
    const double meanC = (std::hypot(first[1], first[2]) + std::hypot(second[1], second[2])) / 2;
    const double g = 1 + 0.5 * (1 - seventh(meanC));
    const double a1 = first[1] * g, a2 = second[1] * g;
    const double c1 = std::hypot(a1, first[2]), c2 = std::hypot(a2, second[2]);
    const auto hue = [&](double b, double a) {
        const double h = std::atan2(b, a) / degree;
        return a == 0 && b == 0 ? 0.0 : h < 0 ? h + 360 : h;
    };
    const double h1 = hue(first[2], a1), h2 = hue(second[2], a2);
    double step = c1 * c2 == 0 ? 0 : h2 - h1;
    step += step > 180 ? -360 : step < -180 ? 360 : 0;
    double h = h1 + h2;
    if (c1 * c2 != 0)
        h = std::abs(h1 - h2) <= 180 ? h / 2 : h < 360 ? (h + 360) / 2 : (h - 360) / 2;
    const double dL = second[0] - first[0], dC = c2 - c1;
    const double dH = 2 * std::sqrt(c1 * c2) * std::sin(step / 2 * degree);
    const double l = (first[0] + second[0]) / 2, c = (c1 + c2) / 2;
    const double t = 1 - 0.17 * std::cos((h - 30) * degree) + 0.24 * std::cos(2 * h * degree) +
                     0.32 * std::cos((3 * h + 6) * degree) - 0.20 * std::cos((4 * h - 63) * degree);
    const double sL = 1 + 0.015 * (l - 50) * (l - 50) / std::sqrt(20 + (l - 50) * (l - 50));
    const double sC = 1 + 0.045 * c, sH = 1 + 0.015 * c * t;
    const double turn = 60 * std::exp(-std::pow((h - 275) / 25, 2)) * degree;
    const double rT = -2 * seventh(c) * std::sin(turn);
    return std::sqrt(std::pow(dL / sL, 2) + std::pow(dC / sC, 2) + std::pow(dH / sH, 2) +
                     rT * dC / sC * dH / sH);
}

} // namespace

class TestPalette : public QObject
{
    Q_OBJECT

private slots:
    void differenceFollowsThePaper();
    void rolesStandOut();
    void rolesStayApart();
    void seriesStandOut();
    void textIsReadable();
    void changesAreColouredBeyondHalfAPoint();
    void themesAreWhatTheySay();
    void fontsAreBundled();
};

void TestPalette::differenceFollowsThePaper()
{
    // First, 16th and 34th pair of the test data of Sharma, Wu, Dalal.
    QVERIFY(std::abs(difference({50, 2.6772, -79.7751}, {50, 0, -82.7485}) - 2.0425) < 1e-4);
    QVERIFY(std::abs(difference({50, 2.5, 0}, {50, 0, -2.5}) - 4.3065) < 1e-4);
    QVERIFY(std::abs(difference({2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}) - 0.9082) <
            1e-4);
}

void TestPalette::rolesStandOut()
{
    for (const bool dark : {false, true}) {
        const QColor background = (dark ? darkPlotTheme() : exportPlotTheme()).background;
        for (const QString& role : plotRoles())
            QVERIFY2(contrastRatio(roleColor(role, dark), background) >= 3,
                     qPrintable(role + (dark ? " dark" : " light")));
    }
    QVERIFY(!roleColor("no such role", false).isValid());
}

void TestPalette::rolesStayApart()
{
    const QStringList roles = plotRoles();
    QCOMPARE(roles.size(), 6);
    for (const bool dark : {false, true})
        for (const Matrix& vision : kVision)
            for (int i = 0; i < roles.size(); ++i)
                for (int j = 0; j < i; ++j) {
                    const double distance =
                        difference(lab(seen(roleColor(roles[i], dark), vision)),
                                   lab(seen(roleColor(roles[j], dark), vision)));
                    QVERIFY2(
                        distance >= 10,
                        qPrintable(QString("%1 and %2: %3").arg(roles[i], roles[j]).arg(distance)));
                }
}

void TestPalette::seriesStandOut()
{
    for (const bool dark : {false, true})
        for (int i = 0; i < 8; ++i)
            QVERIFY2(contrastRatio(seriesColor(i, dark),
                                   (dark ? darkPlotTheme() : lightPlotTheme()).background) >= 3,
                     qPrintable(QString::number(i)));
}

void TestPalette::textIsReadable()
{
    for (const PlotTheme& theme : {lightPlotTheme(), darkPlotTheme(), exportPlotTheme()}) {
        QVERIFY(contrastRatio(theme.text, theme.background) >= 7);
        QVERIFY(contrastRatio(theme.mutedText, theme.background) >= 4.5);
        QVERIFY(contrastRatio(theme.axis, theme.background) >= 3);
    }
    for (const QPalette& palette : {lightPalette(), darkPalette()})
        for (const auto& [text, back] : {std::pair(QPalette::WindowText, QPalette::Window),
                                         std::pair(QPalette::Text, QPalette::Base),
                                         std::pair(QPalette::ButtonText, QPalette::Button),
                                         std::pair(QPalette::HighlightedText, QPalette::Highlight),
                                         std::pair(QPalette::Link, QPalette::Base)})
            QVERIFY2(contrastRatio(palette.color(text), palette.color(back)) >= 4.5,
                     qPrintable(palette.color(text).name() + " on " + palette.color(back).name()));
}

void TestPalette::changesAreColouredBeyondHalfAPoint()
{
    for (const bool dark : {false, true}) {
        QCOMPARE(deltaColor(0.5, dark), deltaColor(0, dark));
        QCOMPARE(deltaColor(-0.5, dark), deltaColor(0, dark));
        QVERIFY(deltaColor(0.51, dark) != deltaColor(0, dark));
        QVERIFY(deltaColor(-0.51, dark) != deltaColor(0, dark));
        QVERIFY(deltaColor(1, dark) != deltaColor(-1, dark));
    }
}

void TestPalette::themesAreWhatTheySay()
{
    QVERIFY(isDark(darkPalette()));
    QVERIFY(!isDark(lightPalette()));
    QVERIFY(plotThemeFor(darkPalette()).dark);
    QCOMPARE(exportPlotTheme().background, QColor(Qt::white));
    QVERIFY(!themedIcon("export", darkPalette()).isNull());
    QVERIFY(themedIcon("no such icon", darkPalette()).isNull());
    QVERIFY(!applicationIcon().pixmap(64, 64).isNull());
}

void TestPalette::fontsAreBundled()
{
    QVERIFY(loadBundledFonts());
    QCOMPARE(QFontInfo(QFont(sansFamily())).family(), sansFamily());
    QVERIFY(QFontInfo(monospaceFont()).fixedPitch());
}

QTEST_MAIN(TestPalette)
#include "tst_palette.moc"
