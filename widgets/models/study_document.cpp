// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/study_document.h"

#include <QFileInfo>

#include "core/pipeline/study_plan_file.h"
#include "core/store/parts.h"
#include "core/store/study.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

std::optional<UnfinishedWork> findUnfinished(const std::filesystem::path& study)
{
    const std::filesystem::path parts = partsFolderOf(study);
    std::error_code ignored;
    if (!std::filesystem::exists(parts / "plan.json", ignored))
        return std::nullopt;
    Result<StudyPlan> plan = readStudyPlan(parts / "plan.json");
    if (!plan)
        return std::nullopt;
    plan->resume = true;
    plan->study = study; // the folder may have been moved since
    UnfinishedWork work{std::move(*plan), 0};
    for (const UnfinishedRun& run : unfinishedRuns(parts))
        work.finishedLayers += run.finishedLayers;
    return work;
}

} // namespace

std::filesystem::path partsFolderOf(const std::filesystem::path& study)
{
    std::filesystem::path parts = study;
    return parts.replace_extension(".parts");
}

Result<LoadedStudy> readStudy(const std::filesystem::path& path)
{
    MLA_TRY(data, loadStudy(path));
    return LoadedStudy{std::move(data), findUnfinished(path)};
}

StudyDocument::StudyDocument(StudyLoader loader, QObject* parent)
    : QObject(parent), m_loader(std::move(loader))
{
    connect(&m_task, &LatestTask::busyChanged, this, &StudyDocument::loadingChanged);
}

void StudyDocument::open(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    m_task.start([loader = m_loader, absolute] { return loader(filePath(absolute)); },
                 [this, absolute](const Result<LoadedStudy>& loaded) {
                     if (!loaded) {
                         emit openFailed(absolute, loaded.error());
                         return;
                     }
                     m_study = loaded->data;
                     m_loaded = true;
                     setPath(absolute);
                     emit studyChanged();
                     emit opened(absolute);
                     if (loaded->unfinished)
                         emit unfinishedFound(*loaded->unfinished);
                 });
}

void StudyDocument::expect(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    if (absolute == m_path)
        return;
    clearStudy();
    setPath(absolute);
    emit studyChanged();
    reload();
}

void StudyDocument::reload()
{
    if (m_path.isEmpty() || !QFileInfo::exists(m_path))
        return;
    m_task.start([loader = m_loader, path = m_path] { return loader(filePath(path)); },
                 [this](const Result<LoadedStudy>& loaded) {
                     if (!loaded) {
                         emit reloadFailed(loaded.error());
                         return;
                     }
                     m_study = loaded->data;
                     m_loaded = true;
                     emit studyChanged();
                 });
}

void StudyDocument::close()
{
    clearStudy();
    setPath({});
    emit studyChanged();
}

void StudyDocument::clearStudy()
{
    m_task.drop();
    m_study = {};
    m_loaded = false;
}

void StudyDocument::setPath(const QString& path)
{
    if (path == m_path)
        return;
    m_path = path;
    emit pathChanged(path);
}

const RunRecord* StudyDocument::run(const QString& id) const
{
    return id.isEmpty() ? nullptr : m_study.findRun(id.toStdString());
}

const RunRecord*
StudyDocument::runOrAncestor(const QString& id,
                             const std::function<bool(const RunRecord&)>& has) const
{
    const RunRecord* run = this->run(id);
    // A parent cycle can only come from a damaged file; the study's size bounds the walk.
    for (std::size_t step = 0; run && step <= m_study.runs.size(); ++step) {
        if (has(*run))
            return run;
        run = m_study.findRun(run->parent);
    }
    return nullptr;
}

} // namespace mla::ui
