// SPDX-License-Identifier: GPL-3.0-or-later
// The refinement that is running now, as a record that grows: pages draw it like a stored run.
#pragma once

#include <vector>

#include <QObject>
#include <QString>

#include "core/base/job.h"
#include "core/store/records.h"
#include "widgets/jobs/event_queue.h"

namespace mla::ui
{

/// Lives on the GUI thread. Follows one job at a time; events of any other are ignored.
class LiveRun : public QObject
{
    Q_OBJECT
public:
    explicit LiveRun(QObject* parent = nullptr) : QObject(parent) {}

    void follow(JobId job);
    void consume(JobId job, const std::vector<JobEvent>& events);
    void end(JobId job);

    [[nodiscard]] bool active() const { return m_active; } ///< a refinement is running
    [[nodiscard]] const RunRecord& record() const { return m_record; }
    [[nodiscard]] const LayerRecord* layer(int layer) const;

signals:
    void started();                                              ///< record() is empty again
    void pointsAdded(const std::vector<mla::LossPoint>& points); ///< in order, already in record()
    void layerFinished(int layer);
    void ended();

private:
    void begin(const StageStarted& stage);
    void stop();
    LayerRecord& layerFor(LayerIndex layer);

    JobId m_job = 0;
    bool m_active = false;
    RunRecord m_record;
};

} // namespace mla::ui
