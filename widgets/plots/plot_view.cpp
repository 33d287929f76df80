// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/plot_view.h"

#include <utility>

#include <QApplication>
#include <QClipboard>
#include <QStackedLayout>

#include "widgets/plots/export_dialog.h"
#include "widgets/plots/plot_view_private.h"
#include "widgets/plots/title_label.h"

namespace mla::ui
{

PlotView::PlotView(QWidget* parent) : QWidget(parent), d(std::make_unique<Private>(this))
{
    d->buildActions();
    d->buildWidgets();
    d->connectPlot();
    clear(tr("No figure to show yet."));
    d->rebuild();
}

PlotView::~PlotView() = default;

void PlotView::setFigure(const mla::Figure& figure)
{
    const bool keep = !d->empty && d->zoomed && figure.id == d->figure.id;
    const QCPRange x = keep ? d->plot->xAxis->range() : QCPRange();
    const QCPRange y = keep ? d->plot->yAxis->range() : QCPRange();
    d->figure = figure;
    d->empty = false;
    d->zoomed = keep;
    d->rebuild();
    if (keep) {
        d->plot->xAxis->setRange(x);
        d->plot->yAxis->setRange(y);
    }
    d->title->setFullText(QString::fromStdString(figure.title));
    const QString caption = QString::fromStdString(figure.caption);
    d->title->setToolTip(caption);
    d->plot->setAccessibleName(QString::fromStdString(figure.title));
    d->plot->setAccessibleDescription(caption);
    d->stack->setCurrentIndex(1);
    d->replotNow();
}

const mla::Figure& PlotView::figure() const
{
    return d->empty ? d->figure : d->painter.figure();
}

void PlotView::appendPoint(int series, double x, double y)
{
    if (d->empty)
        return;
    d->painter.append(series, x, y);
    d->scheduleReplot();
}

void PlotView::setSelectedLayer(std::optional<int> layer)
{
    d->layer = layer;
    d->painter.setSelectedLayer(layer);
    d->scheduleReplot();
}

std::optional<int> PlotView::selectedLayer() const
{
    return d->layer;
}

void PlotView::clear(const QString& emptyText)
{
    d->empty = true;
    d->zoomed = false;
    d->figure = {};
    d->emptyLabel->setText(emptyText);
    d->stack->setCurrentIndex(0);
}

bool PlotView::isEmpty() const
{
    return d->empty;
}

void PlotView::setSmoothing(double weight)
{
    d->smoothing = weight;
    d->painter.setSmoothing(weight);
    d->scheduleReplot();
}

double PlotView::smoothing() const
{
    return d->smoothing;
}
bool PlotView::isZoomed() const
{
    return d->zoomed;
}
std::optional<PlotZoom> PlotView::zoom() const
{
    if (d->empty || !d->zoomed)
        return std::nullopt;
    const QCPRange x = d->plot->xAxis->range(), y = d->plot->yAxis->range();
    return PlotZoom{x.lower, x.upper, y.lower, y.upper};
}

void PlotView::setZoom(const PlotZoom& zoom)
{
    const QCPRange x(zoom.left, zoom.right), y(zoom.bottom, zoom.top);
    if (d->empty || !QCPRange::validRange(x) || !QCPRange::validRange(y))
        return;
    d->zoomed = true;
    d->plot->xAxis->setRange(x);
    d->plot->yAxis->setRange(y);
    d->scheduleReplot();
}

QSize PlotView::sizeHint() const
{
    return {520, 340};
}
QSize PlotView::minimumSizeHint() const
{
    return {220, 160};
}
QCustomPlot* PlotView::plot() const
{
    return d->plot;
}

void PlotView::setCursor(double x)
{
    if (d->empty)
        return;
    d->crosshair.moveTo(x);
    d->crosshair.showText({}, {});
    d->replotOverlay();
}

void PlotView::resetView()
{
    d->zoomed = false;
    d->replotNow();
}

void PlotView::copyImage()
{
    if (!d->empty)
        QApplication::clipboard()->setPixmap(d->plot->toPixmap(0, 0, devicePixelRatioF()));
}

void PlotView::exportImage()
{
    if (d->empty)
        return;
    ExportDialog dialog(QString::fromStdString(d->figure.id), this);
    if (dialog.exec() != QDialog::Accepted)
        return;
    if (const Status status = exportFigure(figure(), dialog.path(), dialog.options()); !status)
        emit exportFailed(QString::fromStdString(status.error().text()));
}

void PlotView::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    const bool restyle = event->type() == QEvent::PaletteChange ||
                         event->type() == QEvent::FontChange ||
                         event->type() == QEvent::StyleChange;
    if (!restyle || !d)
        return;
    // The picture as it stands, live points included, in the new colours.
    if (!d->empty)
        setFigure(mla::Figure(d->painter.figure()));
    else
        d->rebuild();
}

bool PlotView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == d->plot && event->type() == QEvent::Leave && !d->empty)
        d->leave();
    if (watched == d->plot && event->type() == QEvent::Paint && std::exchange(d->stale, false))
        d->plot->replot(QCustomPlot::rpQueuedRefresh);
    return QWidget::eventFilter(watched, event);
}

} // namespace mla::ui
