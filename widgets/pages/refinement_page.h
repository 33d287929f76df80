// SPDX-License-Identifier: GPL-3.0-or-later
// How refinement went, or goes right now: loss curves, error before and after, layer by layer.
#pragma once

#include "widgets/jobs/live_run.h"
#include "widgets/pages/page.h"

class QCheckBox;
class QLabel;
class QSlider;

namespace mla::ui
{

class RefinementPage : public Page
{
    Q_OBJECT
public:
    RefinementPage(StudyDocument& document, SelectionModel& selection, LiveRun& live,
                   QWidget* parent = nullptr);

    [[nodiscard]] bool followsLive() const;

protected:
    void refresh() override;
    void showRun() override;

private:
    QWidget* buildHeader();
    void followLive();
    void leaveFinishedRun();
    void showTitle(const RunRecord* run);
    void showLayer();
    void appendPoints(const std::vector<LossPoint>& points);
    void setSmoothing(int percent);
    [[nodiscard]] const RunRecord* shownRun() const; ///< the live one, the selected one, or null
    /// The selected layer; without one, the first in work or else the first with a curve.
    [[nodiscard]] std::optional<int> shownLayer() const;

    LiveRun& m_live;
    QLabel* m_title;
    QCheckBox* m_follow;
    bool m_wantsLive = true; ///< false once the user turned to something else
    QString m_run;           ///< last selected run
    QSlider* m_smoothing;
    QLabel* m_smoothingText;
    PlotView* m_layerLoss;
    PlotView* m_allLosses;
    PlotView* m_errors;
    LayerTableView* m_table;
};

} // namespace mla::ui
