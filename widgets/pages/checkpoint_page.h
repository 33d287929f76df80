// SPDX-License-Identifier: GPL-3.0-or-later
// One checkpoint or draft before a run: configuration, tensors with statistics on demand, what its
// cache takes and what a conversion would make of it, and what to be warned of.
#pragma once

#include "widgets/dialogs/new_run_dialog.h"
#include "widgets/jobs/latest_task.h"
#include "widgets/models/details_model.h"
#include "widgets/pages/page.h"
#include "widgets/pages/tensor_view.h"

class QLabel;
class QTableView;
class QToolButton;

namespace mla::ui
{

class CachePlanner;
class EmptyState;
class PathField;

class CheckpointPage : public Page
{
    Q_OBJECT
public:
    CheckpointPage(StudyDocument& document, SelectionModel& selection, ModelInspector inspect,
                   TensorMeter measure, QWidget* parent = nullptr);

    void openModel(const QString& path); ///< read off the GUI thread; errors go to failed()
    [[nodiscard]] const QString& model() const { return m_model; } ///< shown; "" = none
    [[nodiscard]] bool loading() const { return m_task.busy(); }

signals:
    /// The user wants to run the planned conversion of the shown checkpoint.
    void runRequested(const QString& checkpoint, const mla::ConvertSettings& settings);

protected:
    void refresh() override; ///< the study's checkpoints and drafts
    void showRun() override {}
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    QWidget* buildSource();
    QWidget* buildConfig();
    void take(const QString& path, const Result<InspectReport>& report);
    void showReport(const InspectReport& report);
    void showNothing(const QString& title, const QString& hint);

    ModelInspector m_inspect;
    QString m_model;
    PathField* m_path = nullptr;
    QToolButton* m_fromStudy = nullptr;
    QLabel *m_summary = nullptr, *m_warnings = nullptr;
    DetailsModel* m_config;
    QTableView* m_configView = nullptr;
    TensorView* m_tensors;
    CachePlanner* m_planner;
    EmptyState* m_state = nullptr;
    LatestTask m_task;
};

} // namespace mla::ui
