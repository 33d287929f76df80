// SPDX-License-Identifier: GPL-3.0-or-later
// Turns a Figure into QCustomPlot objects. The same painter serves screen and files; what differs
// is the style.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <qcustomplot.h>

#include "core/report/figure_data.h"
#include "widgets/common/palette.h"
#include "widgets/plots/curve_data.h"

namespace mla::ui
{

struct PaintStyle {
    PlotTheme theme;
    QFont font;            ///< with a pixel size, in drawing units
    double unitsPerPt = 1; ///< drawing units in a point
    double linePt = 1;
    bool showTitle = false;
    bool fast = false; ///< curves of very many points thin and without smoothing of edges
};

/// A curve of more points is drawn without markers.
constexpr int kMostMarkers = 40;

class FigurePainter
{
public:
    explicit FigurePainter(QCustomPlot* plot);

    /// Replaces everything on the plot; sets the full ranges.
    void build(const Figure& figure, const PaintStyle& style);
    /// Adapts labels and legend to a drawing of this size; call before drawing, last.
    void layoutFor(const QSize& size);
    /// Picks for each curve the copy that suits the visible range; call before drawing.
    void updateDetail();
    void setFullRange();

    void append(int series, double x, double y);
    void setSmoothing(double weight);
    void setSelectedLayer(std::optional<int> layer);

    /// "2 values not drawn: ..." or empty.
    [[nodiscard]] QString note() const;
    [[nodiscard]] const Figure& figure() const { return m_figure; }
    [[nodiscard]] bool integerX() const { return m_integerX; }
    [[nodiscard]] const PaintStyle& style() const { return m_style; }
    /// Colour of a series as drawn; invalid for an unknown index.
    [[nodiscard]] QColor colorOf(int series) const;
    [[nodiscard]] QCPGraph* graphOf(int series) const;
    [[nodiscard]] QCPBars* barsOf(int series) const;

private:
    struct Drawn {
        QColor color;
        Qt::PenStyle dash = Qt::SolidLine;
        int shape = 0; ///< of the markers of a series of points
        std::unique_ptr<CurveData> data;
        QCPGraph* graph = nullptr;    ///< the curve
        QCPGraph* smooth = nullptr;   ///< its average, only while smoothing
        QCPGraph* isolated = nullptr; ///< points a line can't show
        QCPBars* bars = nullptr;
        GraphData smoothData;
        std::unique_ptr<Smoother> smoother;
    };

    void reset();
    void styleFrame();
    void addTitle();
    void addNote();
    void addLegend();
    void addMark();
    void addHorizontalBand();
    void addCellTexts();
    void addSeries(int index);
    void addLine(int index);
    void addBars(int index, QCPBarsGroup* group);
    void addBand(const Series& series, const QColor& color);
    void addErrors(const Series& series, QCPAbstractPlottable* plottable, const QColor& color);
    void addHeatmap();
    void addLayerScale();
    void addScale(const QCPRange& range, const QCPColorGradient& gradient, const Axis& axis,
                  bool integer);
    void fillLegend();
    int layoutLegend(int width); ///< returns its height
    void layoutCategories(int width, int height);
    void chooseColors();
    void styleSeries(int index);
    void fillSmooth(Drawn& drawn);
    void placeSelection();
    [[nodiscard]] double pt(double points) const { return points * m_style.unitsPerPt; }
    [[nodiscard]] QFont scaledFont(double factor, bool bold) const;

    QCustomPlot* m_plot;
    Figure m_figure;
    PaintStyle m_style;
    std::vector<Drawn> m_drawn;
    QCPColorMap* m_map = nullptr;
    QCPColorScale* m_scale = nullptr;
    QString m_scaleTitle;
    QCPTextElement* m_title = nullptr;
    QCPTextElement* m_note = nullptr;
    QCPLegend* m_legend = nullptr;
    QCPItemRect* m_selection = nullptr;
    std::optional<int> m_selectedLayer;
    double m_smoothing = 0;
    bool m_integerX = false;
    bool m_layerScale = false; ///< many layers: coloured along a scale instead of a legend
};

/// Colour of a layer at `position` (0 first to 1 last) on the scale used for many layers.
[[nodiscard]] QColor layerColor(double position, bool dark);

} // namespace mla::ui
