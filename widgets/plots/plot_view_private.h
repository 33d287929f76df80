// SPDX-License-Identifier: GPL-3.0-or-later
// PlotView's parts and what they do: widgets, actions, painting, mouse.
#pragma once

#include "widgets/plots/plot_view.h"

#include <QTimer>

#include "widgets/plots/figure_painter.h"
#include "widgets/plots/hover.h"

class QAction;
class QLabel;
class QStackedLayout;

namespace mla::ui
{

class TitleLabel;

class PlotView::Private
{
public:
    explicit Private(PlotView* view)
        : q(view), plot(new QCustomPlot(view)), painter(plot), crosshair(plot)
    {
    }

    void buildWidgets();
    void buildActions();
    void connectPlot();
    [[nodiscard]] PaintStyle style() const;
    void rebuild();
    void scheduleReplot();
    void replotNow();
    void replotOverlay();
    [[nodiscard]] bool isSeen() const { return !plot->visibleRegion().isEmpty(); }
    void hover(const QPointF& position);
    void leave();
    void press(QMouseEvent* event);
    void release(QMouseEvent* event);

    PlotView* q;
    QCustomPlot* plot;
    FigurePainter painter;
    Crosshair crosshair;
    mla::Figure figure;
    bool empty = true;
    bool zoomed = false;
    bool settingRange = false;
    bool stale = false; ///< what is drawn is not what is to be seen
    std::optional<int> layer;
    double smoothing = 0;
    QTimer replotTimer;
    QStackedLayout* stack = nullptr;
    QLabel* emptyLabel = nullptr;
    TitleLabel* title = nullptr;
    QWidget* toolbar = nullptr;
    std::vector<std::pair<QAction*, QString>> actions; ///< with the icon's name
    QPointF pressedAt;
};

} // namespace mla::ui
