// SPDX-License-Identifier: GPL-3.0-or-later
// The study the window shows: read off the GUI thread, read again whenever a job has added to it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include <QObject>
#include <QString>

#include "core/base/result.h"
#include "core/pipeline/settings.h"
#include "core/store/records.h"
#include "widgets/jobs/latest_task.h"

namespace mla::ui
{

/// Work that was begun and not finished, found beside a study.
struct UnfinishedWork {
    StudyPlan plan; ///< with `resume` set
    int finishedLayers = 0;
};

/// A study as read from disk.
struct LoadedStudy {
    StudyData data;
    std::optional<UnfinishedWork> unfinished;
};
using StudyLoader = std::function<Result<LoadedStudy>(const std::filesystem::path&)>;

/// Reads the study and looks into `<study stem>.parts/` beside it.
Result<LoadedStudy> readStudy(const std::filesystem::path& path);
/// Folder beside `study` that holds results in flight and plan.json.
[[nodiscard]] std::filesystem::path partsFolderOf(const std::filesystem::path& study);

/// Lives on the GUI thread.
class StudyDocument : public QObject
{
    Q_OBJECT
public:
    explicit StudyDocument(StudyLoader loader, QObject* parent = nullptr);

    void open(const QString& path); ///< the current study stays until the new one is read
    /// Takes the name of a study that a job is about to write.
    void expect(const QString& path);
    void reload(); ///< does nothing while there is no file
    void close();

    [[nodiscard]] const StudyData& study() const { return m_study; }
    [[nodiscard]] const QString& path() const { return m_path; } ///< "" = no study
    [[nodiscard]] bool isLoaded() const { return m_loaded; }
    [[nodiscard]] const RunRecord* run(const QString& id) const;
    /// `id`, or the nearest ancestor of it for which `has` holds.
    [[nodiscard]] const RunRecord*
    runOrAncestor(const QString& id, const std::function<bool(const RunRecord&)>& has) const;

signals:
    void studyChanged();
    void pathChanged(const QString& path);
    void opened(const QString& path); ///< after open(), once it is read
    void openFailed(const QString& path, const mla::Error& error);
    void reloadFailed(const mla::Error& error);
    void loadingChanged(bool loading);
    void unfinishedFound(const mla::ui::UnfinishedWork& work); ///< after open() only

private:
    void setPath(const QString& path);
    void clearStudy();

    StudyLoader m_loader;
    StudyData m_study;
    QString m_path;
    bool m_loaded = false;
    LatestTask m_task;
};

} // namespace mla::ui
