// SPDX-License-Identifier: GPL-3.0-or-later
// How far keys and values compress: singular values, energy retained at the run's rank.
#pragma once

#include "widgets/pages/page.h"

class QLabel;

namespace mla::ui
{

class SpectraPage : public Page
{
    Q_OBJECT
public:
    SpectraPage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

protected:
    void refresh() override;

private:
    void showLayer();
    [[nodiscard]] const RunRecord* measuredRun() const; ///< the run or the conversion it refines

    QLabel* m_title;
    PlotView* m_spectrum;
    PlotView* m_retained;
    LayerTableView* m_table;
};

} // namespace mla::ui
