// SPDX-License-Identifier: GPL-3.0-or-later
// One figure on screen: zoom, pan, crosshair, live growth, linked layer selection, export.
// Lives on the GUI thread, like every widget.
#pragma once

#include <memory>
#include <optional>

#include <QWidget>

#include "core/report/figure_data.h"

class QCustomPlot;

namespace mla::ui
{

/// A part of a figure, in axis coordinates.
struct PlotZoom {
    double left = 0, right = 0, bottom = 0, top = 0;
};

class PlotView : public QWidget
{
    Q_OBJECT

public:
    explicit PlotView(QWidget* parent = nullptr);
    ~PlotView() override;

    /// Shows `figure`. A figure with the id of the one shown keeps the user's zoom.
    void setFigure(const mla::Figure& figure);
    [[nodiscard]] const mla::Figure& figure() const;
    /// Adds a point at the end of a line. O(1); the picture follows at 20 Hz at most.
    void appendPoint(int series, double x, double y);
    /// Highlights what belongs to a layer; the rest fades. nullopt: nothing selected.
    void setSelectedLayer(std::optional<int> layer);
    [[nodiscard]] std::optional<int> selectedLayer() const;
    /// Takes the figure away and shows `emptyText`, which says what to do next.
    void clear(const QString& emptyText);
    [[nodiscard]] bool isEmpty() const;
    /// Exponential smoothing of lines, 0 (off) to below 1; the raw curve stays visible, faint.
    void setSmoothing(double weight);
    [[nodiscard]] double smoothing() const;
    /// True once the user zoomed or panned; resetView() makes it false.
    [[nodiscard]] bool isZoomed() const;
    [[nodiscard]] std::optional<PlotZoom> zoom() const; ///< none while the whole figure shows
    /// As if the user had zoomed there; an empty plot and ranges that cannot be drawn stay alone.
    void setZoom(const PlotZoom& zoom);

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;
    /// The drawing surface, for tests and for callers that read pixel positions.
    [[nodiscard]] QCustomPlot* plot() const;

public slots:
    /// Moves the crosshair to `x` in axis coordinates without emitting cursorMoved; NaN hides it.
    void setCursor(double x);
    void resetView();
    void copyImage();
    /// Asks for a size and a file, then writes the figure.
    void exportImage();

signals:
    /// A bar, a curve or a heat-map cell of a layer was clicked.
    void layerActivated(int layer);
    /// The pointer moved over the plot; NaN when it left.
    void cursorMoved(double x);
    /// Something went wrong while exporting; show it in the window's error bar.
    void exportFailed(const QString& message);

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    class Private;
    std::unique_ptr<Private> d;
};

} // namespace mla::ui
