// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/plot_view_private.h"

#include <limits>

#include <QAction>
#include <QApplication>
#include <QContextMenuEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QStackedLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "widgets/common/theme.h"
#include "widgets/plots/title_label.h"

namespace mla::ui
{
namespace
{

constexpr int kReplotMs = 50; // 20 Hz
constexpr double kScreenLinePt = 1.3;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

} // namespace

void PlotView::Private::buildWidgets()
{
    auto* page = new QWidget(q);
    toolbar = new QWidget(page);
    title = new TitleLabel(toolbar);
    auto* row = new QHBoxLayout(toolbar);
    row->setContentsMargins(8, 2, 4, 2);
    row->setSpacing(1);
    row->addWidget(title, 1);
    for (const auto& [action, icon] : actions) {
        auto* button = new QToolButton(toolbar);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setIconSize(QSize(16, 16));
        button->setAccessibleName(action->text());
        row->addWidget(button);
    }
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(toolbar);
    column->addWidget(plot, 1);
    emptyLabel = new QLabel(q);
    emptyLabel->setAlignment(Qt::AlignCenter);
    emptyLabel->setWordWrap(true);
    emptyLabel->setMargin(24);
    emptyLabel->setForegroundRole(QPalette::PlaceholderText);
    emptyLabel->setBackgroundRole(QPalette::Base);
    emptyLabel->setAutoFillBackground(true);
    stack = new QStackedLayout(q);
    stack->addWidget(emptyLabel);
    stack->addWidget(page);
}

void PlotView::Private::buildActions()
{
    const auto add = [this](const QString& text, const QString& icon, void (PlotView::*slot)()) {
        auto* action = new QAction(text, q);
        connect(action, &QAction::triggered, q, slot);
        actions.emplace_back(action, icon);
        q->addAction(action);
        return action;
    };
    add(tr("Reset view"), QStringLiteral("zoom-fit"), &PlotView::resetView)
        ->setToolTip(tr("Reset view (double-click)"));
    add(tr("Copy image"), QStringLiteral("copy"), &PlotView::copyImage);
    add(tr("Export…"), QStringLiteral("export"), &PlotView::exportImage);
}

void PlotView::Private::connectPlot()
{
    plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    plot->setMouseTracking(true);
    plot->setFocusPolicy(Qt::StrongFocus);
    plot->setContextMenuPolicy(Qt::CustomContextMenu);
    plot->installEventFilter(q);
    connect(plot, &QCustomPlot::customContextMenuRequested, q, [this](const QPoint& at) {
        QMenu menu(q);
        for (const auto& [action, icon] : actions)
            menu.addAction(action);
        menu.exec(plot->mapToGlobal(at));
    });
    connect(plot, &QCustomPlot::mousePress, q, [this](QMouseEvent* event) { press(event); });
    connect(plot, &QCustomPlot::mouseRelease, q, [this](QMouseEvent* event) { release(event); });
    connect(plot, &QCustomPlot::mouseMove, q,
            [this](QMouseEvent* event) { hover(event->position()); });
    connect(plot, &QCustomPlot::mouseDoubleClick, q, [this] { q->resetView(); });
    connect(plot, &QCustomPlot::beforeReplot, q, [this] {
        if (empty)
            return;
        painter.updateDetail();
        painter.layoutFor(plot->viewport().size());
    });
    replotTimer.setSingleShot(true);
    replotTimer.setInterval(kReplotMs);
    connect(&replotTimer, &QTimer::timeout, q, [this] { replotNow(); });
}

PaintStyle PlotView::Private::style() const
{
    PaintStyle style;
    style.theme = plotThemeFor(q->palette());
    style.font = q->font();
    style.unitsPerPt = q->logicalDpiY() / 72.0;
    const double size = q->font().pointSizeF() > 0 ? q->font().pointSizeF() * style.unitsPerPt
                                                   : q->font().pixelSize();
    style.font.setPixelSize(std::max(9, static_cast<int>(std::lround(size * 0.92))));
    style.linePt = kScreenLinePt;
    style.fast = true;
    return style;
}

void PlotView::Private::rebuild()
{
    for (const auto& [action, icon] : actions)
        action->setIcon(themedIcon(icon, q->palette()));
    if (empty)
        return;
    settingRange = true;
    painter.build(figure, style());
    settingRange = false;
    for (QCPAxis* axis : {plot->xAxis, plot->yAxis})
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), q, [this] {
            if (!settingRange)
                zoomed = true;
        });
    crosshair.create(painter.style());
    QColor frame = painter.style().theme.text;
    plot->selectionRect()->setPen(QPen(frame, 1, Qt::DashLine));
    frame.setAlpha(25);
    plot->selectionRect()->setBrush(frame);
    toolbar->setAutoFillBackground(true);
    QPalette palette = q->palette();
    palette.setColor(QPalette::Window, painter.style().theme.background);
    toolbar->setPalette(palette);
}

void PlotView::Private::scheduleReplot()
{
    if (!replotTimer.isActive())
        replotTimer.start();
}

void PlotView::Private::replotNow()
{
    replotTimer.stop();
    if (empty)
        return;
    if (!zoomed) {
        settingRange = true;
        painter.setFullRange();
        settingRange = false;
    }
    stale = !isSeen(); // plots of pages behind others are drawn when they come to the front
    if (!stale)
        plot->replot(QCustomPlot::rpQueuedReplot);
}

/// The crosshair has a layer of its own: the curves need not be drawn again.
void PlotView::Private::replotOverlay()
{
    if (isSeen())
        plot->layer(QStringLiteral("overlay"))->replot();
    else
        scheduleReplot();
}

void PlotView::Private::hover(const QPointF& position)
{
    if (empty)
        return;
    if (!plot->axisRect()->rect().contains(position.toPoint())) {
        leave();
        return;
    }
    const double x = plot->xAxis->pixelToCoord(position.x());
    const double y = plot->yAxis->pixelToCoord(position.y());
    crosshair.moveTo(x);
    crosshair.showText(hoverText(painter, x, y), position);
    replotOverlay();
    emit q->cursorMoved(x);
}

void PlotView::Private::leave()
{
    crosshair.hide();
    replotOverlay();
    emit q->cursorMoved(kNothing);
}

void PlotView::Private::press(QMouseEvent* event)
{
    pressedAt = event->position();
    const bool box = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
    plot->setSelectionRectMode(box ? QCP::srmZoom : QCP::srmNone);
}

void PlotView::Private::release(QMouseEvent* event)
{
    const double moved = QLineF(pressedAt, event->position()).length();
    if (event->button() != Qt::LeftButton || moved > QApplication::startDragDistance())
        return;
    if (const auto hit = layerAt(painter, *plot, event->position()))
        emit q->layerActivated(*hit);
}

} // namespace mla::ui
