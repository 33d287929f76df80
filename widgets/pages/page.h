// SPDX-License-Identifier: GPL-3.0-or-later
// What every page of the window has in common: it follows the study and the selection, and its
// plots and tables share the selected layer.
#pragma once

#include <QList>
#include <QWidget>

#include "core/report/figure_data.h"
#include "widgets/models/selection_model.h"
#include "widgets/models/study_document.h"
#include "widgets/pages/layer_table_view.h"
#include "widgets/plots/plot_view.h"

namespace mla::ui
{

class Page : public QWidget
{
    Q_OBJECT
public:
    Page(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

    [[nodiscard]] const QList<PlotView*>& plots() const { return m_plots; }

signals:
    void failed(const QString& message); ///< for the message bar

protected:
    virtual void refresh() = 0;           ///< the study has changed
    virtual void showRun() { refresh(); } ///< another run was selected

    PlotView* addPlot(const QString& accessibleName);
    LayerTableView* addLayerTable(std::vector<LayerColumn> columns, const QString& id);
    /// Moves the crosshairs of plots with the same x axis together.
    void linkCursors(const QList<PlotView*>& plots);

    StudyDocument& m_document;
    SelectionModel& m_selection;

private:
    QList<PlotView*> m_plots;
};

/// Shows `figure`, or `emptyText` if it has nothing to draw.
void showFigure(PlotView& plot, const Figure& figure, const QString& emptyText);

} // namespace mla::ui
