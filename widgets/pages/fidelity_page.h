// SPDX-License-Identifier: GPL-3.0-or-later
// How far a draft is from its original and why: errors per layer and their sources, predictions by
// position, attention maps. What is missing is measured by jobs in the background.
#pragma once

#include <functional>
#include <map>

#include "core/pipeline/draft_diagnostics.h"
#include "widgets/jobs/study_jobs.h"
#include "widgets/pages/page.h"

class QLabel;
class QPushButton;

namespace mla::ui
{

class AttentionView;
class EmptyState;
class PathField;
struct MapChoice;

/// What the page needs from core; tests put their own functions here.
struct FidelityMeters {
    std::function<Result<ErrorSourcesReport>(JobContext&, const DiagnosticsRequest&)> sources =
        measureErrorSources;
    std::function<Result<PositionScores>(JobContext&, const PositionRequest&)> positions =
        measurePositions;
    std::function<Result<AttentionMapRecord>(JobContext&, const AttentionMapRequest&)> map =
        measureAttentionMap;
};

class FidelityPage : public Page
{
    Q_OBJECT
public:
    FidelityPage(StudyDocument& document, SelectionModel& selection, StudyJobs& jobs,
                 FidelityMeters meters, QWidget* parent = nullptr);

protected:
    void refresh() override;

private:
    enum class Kind { Sources, Positions, Map };

    QWidget* buildSources();
    QWidget* buildPositions();
    QWidget* buildMaps();
    QPushButton* addMeter(const QString& title, const std::function<void()>& measure);
    [[nodiscard]] QString hint(const RunRecord* run, const QString& next) const;
    void showSources(const RunRecord* run);
    void showPositions(const RunRecord* run);
    void showLayer();
    void followJobs();
    /// Of the selected run; null where its original or its folder is not known.
    [[nodiscard]] std::optional<DiagnosticsRequest> request() const;
    void measureSources();
    void measurePositions();
    void measureMap(const MapChoice& choice);
    void start(Kind kind, const QString& title, std::function<Status(JobContext&)> work);

    StudyJobs& m_jobs;
    FidelityMeters m_meters;
    std::map<JobId, Kind> m_running; ///< started here and not ended
    EmptyState* m_state;
    QLabel* m_title;
    PlotView *m_errors, *m_sources, *m_kl, *m_perplexity;
    LayerTableView* m_table;
    QLabel *m_sourcesText, *m_positionsText;
    PathField* m_text;
    QPushButton *m_measureSources, *m_measurePositions;
    AttentionView* m_attention;
};

} // namespace mla::ui
