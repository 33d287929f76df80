// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors of a checkpoint: filter, sort, and statistics of chosen ones on demand, computed on a
// worker thread of its own so that they wait for no run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include <QWidget>

#include "core/pipeline/pipeline.h"
#include "widgets/jobs/job_runner.h"

class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QTreeView;

namespace mla::ui
{

class TensorFilterProxy;
class TensorTreeModel;

/// core's measureTensors().
using TensorMeter =
    std::function<Status(JobContext&, const std::filesystem::path&, const std::vector<std::string>&,
                         const std::function<void(const TensorStatistics&)>&)>;

class TensorView : public QWidget
{
    Q_OBJECT
public:
    explicit TensorView(TensorMeter measure, QWidget* parent = nullptr);

    ~TensorView() override;

    /// Another model: what is being measured is cancelled and forgotten.
    void setModel(const std::filesystem::path& model, const std::vector<TensorSummary>& tensors);
    void clear() { setModel({}, {}); }
    [[nodiscard]] bool measuring() const { return m_runner.busy(); }
    [[nodiscard]] TensorTreeModel& tensors() { return *m_model; }

    void measureSelected(); ///< of the selected rows, or of all shown tensors if there are none
    void cancel();

signals:
    void failed(const QString& message);

protected:
    void changeEvent(QEvent* event) override;

private:
    void buildTree();
    QLayout* buildFilterLine();
    QLayout* buildMeasureLine();
    void takeResults();
    void showProgress(JobId job, const std::vector<JobEvent>& events);
    void endJob(JobId job, const JobEnd& end);
    void showState();
    void filter(const QString& words);
    void setGrouped(bool grouped);
    void showStatisticsColumns(bool shown);
    [[nodiscard]] std::vector<std::string> chosen() const;

    TensorMeter m_measure;
    std::filesystem::path m_path;
    TensorTreeModel* m_model;
    TensorFilterProxy* m_shown;
    QTreeView* m_tree;
    QLineEdit* m_filter = nullptr;
    QLabel* m_state = nullptr;
    QPushButton *m_start = nullptr, *m_cancel = nullptr;
    QProgressBar* m_progress = nullptr;
    struct Inbox; ///< results of one job on their way from the worker
    std::shared_ptr<Inbox> m_inbox;
    JobId m_job = 0;    ///< whose results count; 0: none
    JobRunner m_runner; ///< last: its thread is joined while the rest is there
};

} // namespace mla::ui
