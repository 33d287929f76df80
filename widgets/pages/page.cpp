// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/page.h"

namespace mla::ui
{

Page::Page(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), m_document(document), m_selection(selection)
{
    connect(&document, &StudyDocument::studyChanged, this, [this] { refresh(); });
    connect(&selection, &SelectionModel::runChanged, this, [this] { showRun(); });
}

PlotView* Page::addPlot(const QString& accessibleName)
{
    auto* plot = new PlotView(this);
    plot->setAccessibleName(accessibleName);
    connect(plot, &PlotView::layerActivated, &m_selection,
            [this](int layer) { m_selection.setLayer(layer); });
    connect(&m_selection, &SelectionModel::layerChanged, plot, &PlotView::setSelectedLayer);
    connect(plot, &PlotView::exportFailed, this, &Page::failed);
    m_plots << plot;
    return plot;
}

LayerTableView* Page::addLayerTable(std::vector<LayerColumn> columns, const QString& id)
{
    auto* table = new LayerTableView(std::move(columns), id, this);
    connect(table, &LayerTableView::layerActivated, &m_selection,
            [this](int layer) { m_selection.setLayer(layer); });
    connect(&m_selection, &SelectionModel::layerChanged, table, &LayerTableView::setSelectedLayer);
    connect(table, &LayerTableView::exportFailed, this, &Page::failed);
    return table;
}

void Page::linkCursors(const QList<PlotView*>& plots)
{
    for (PlotView* from : plots)
        for (PlotView* to : plots)
            if (from != to)
                connect(from, &PlotView::cursorMoved, to, &PlotView::setCursor);
}

void showFigure(PlotView& plot, const Figure& figure, const QString& emptyText)
{
    const bool hasData = !figure.series.empty() || figure.heatmap.has_value();
    if (hasData)
        plot.setFigure(figure);
    else
        plot.clear(emptyText);
}

} // namespace mla::ui
