// SPDX-License-Identifier: GPL-3.0-or-later
// A plot with a choice of figures above it and its numbers in words below.
#pragma once

#include <vector>

#include <QWidget>

#include "core/report/figure_data.h"

class QComboBox;
class QLabel;

namespace mla::ui
{

class PlotView;

class FigureChoice : public QWidget
{
    Q_OBJECT
public:
    /// `plot`: of the page, shared with its links; becomes a child of this.
    FigureChoice(PlotView* plot, const QString& name, QWidget* parent = nullptr);

    /// Keeps the figure shown if there is still one of its id.
    void setFigures(std::vector<Figure> figures, const QString& emptyText);
    /// Turns to a figure of the shown kind whose id contains `part`, unless one is shown.
    void follow(const QString& part);

private:
    void show(int index);

    PlotView* m_plot;
    QComboBox* m_box;
    QLabel* m_caption;
    std::vector<Figure> m_figures;
};

} // namespace mla::ui
