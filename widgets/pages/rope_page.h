// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the rotary path, by head and frequency, and what that does to attention at a
// distance.
#pragma once

#include "widgets/pages/page.h"

class QLabel;

namespace mla::ui
{

class RopePage : public Page
{
    Q_OBJECT
public:
    RopePage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

protected:
    void refresh() override;

private:
    void showLayer();
    [[nodiscard]] const RunRecord* measuredRun() const; ///< the run or the conversion it refines

    QLabel* m_title;
    PlotView* m_heatmap;
    PlotView* m_distance;
    LayerTableView* m_table;
};

} // namespace mla::ui
