// SPDX-License-Identifier: GPL-3.0-or-later
// Names along an axis: beside each other, slanted, upright, thinned out, but never over each other.
#include <QTest>
#include <qcustomplot.h>

#include "widgets/plots/plot_view.h"

using namespace mla;
using namespace mla::ui;

namespace
{

Figure named(int count, const std::string& name)
{
    Figure figure;
    figure.id = "named";
    for (int i = 0; i < count; ++i) {
        figure.x.categories.push_back(name + std::to_string(i));
        figure.y.categories.push_back(name + std::to_string(i));
    }
    figure.heatmap = Heatmap();
    figure.heatmap->rows = figure.heatmap->columns = count;
    figure.heatmap->values.assign(static_cast<std::size_t>(count * count), 0.5);
    return figure;
}

int shown(const QCPAxis& axis)
{
    return static_cast<int>(axis.ticker().dynamicCast<QCPAxisTickerText>()->ticks().size());
}

} // namespace

class CategoryLabelsTest : public QObject
{
    Q_OBJECT
private slots:
    void labelsNeverOverlap_data();
    void labelsNeverOverlap();
};

void CategoryLabelsTest::labelsNeverOverlap_data()
{
    QTest::addColumn<int>("count");
    QTest::addColumn<QString>("name");
    QTest::addColumn<double>("angle");
    QTest::newRow("beside each other") << 4 << "t" << 0.0;
    QTest::newRow("slanted") << 8 << "unbrokenname" << -35.0;
    QTest::newRow("upright") << 24 << "token " << -90.0;
    QTest::newRow("thinned out") << 128 << "token " << -90.0;
}

void CategoryLabelsTest::labelsNeverOverlap()
{
    QFETCH(int, count);
    QFETCH(QString, name);
    QFETCH(double, angle);
    PlotView view;
    view.resize(640, 480);
    view.show();
    view.setFigure(named(count, name.toStdString()));
    QApplication::processEvents();
    QCustomPlot* plot = view.plot();
    plot->replot(QCustomPlot::rpImmediateRefresh);
    QCOMPARE(plot->xAxis->tickLabelRotation(), angle);
    const int line = QFontMetrics(plot->yAxis->tickLabelFont()).height();
    const QSize area = plot->axisRect()->size();
    QVERIFY2(shown(*plot->yAxis) * line <= area.height() + line, name.toUtf8());
    if (angle == -90.0)
        QVERIFY2(shown(*plot->xAxis) * line <= area.width() + line, name.toUtf8());
    QCOMPARE(shown(*plot->yAxis) == count, count * line <= area.height() + line);
    QVERIFY(shown(*plot->xAxis) > 1 && shown(*plot->xAxis) <= count);
}

QTEST_MAIN(CategoryLabelsTest)
#include "tst_category_labels.moc"
