// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/details_model.h"

#include <algorithm>

#include <QCoreApplication>

#include "core/report/report_text.h"
#include "widgets/common/format.h"
#include "widgets/common/plain_text.h"
#include "widgets/models/acceptance_rows.h"

namespace mla::ui
{

namespace
{

using Details = std::vector<Detail>;

QString translated(const char* text)
{
    return QCoreApplication::translate("Details", text);
}

/// Drops rows that say nothing.
void add(Details& details, const char* name, const QString& value)
{
    if (!value.isEmpty())
        details.push_back({translated(name), value});
}

/// One row per setting.
void addSettings(Details& details, const std::string& settings)
{
    const auto values = flatSettings(settings);
    if (!values)
        return add(details, QT_TRANSLATE_NOOP("Details", "Settings"), text(settings));
    for (const auto& [name, value] : *values)
        details.push_back({text(name), text(value)});
}

Details checkpointDetails(const CheckpointRecord& checkpoint)
{
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Checkpoint"), text(checkpoint.id));
    add(details, QT_TRANSLATE_NOOP("Details", "Path"), text(checkpoint.path));
    add(details, QT_TRANSLATE_NOOP("Details", "Fingerprint"), text(checkpoint.fingerprint));
    addSettings(details, checkpoint.configJson);
    return details;
}

Details calibrationDetails(const CalibrationRecord& calibration)
{
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Calibration"), text(calibration.id));
    add(details, QT_TRANSLATE_NOOP("Details", "Source"), text(calibration.source));
    add(details, QT_TRANSLATE_NOOP("Details", "Sequences"), QString::number(calibration.sequences));
    add(details, QT_TRANSLATE_NOOP("Details", "Tokens a sequence"),
        QString::number(calibration.length));
    const auto valid = std::count(calibration.mask.begin(), calibration.mask.end(), 1);
    add(details, QT_TRANSLATE_NOOP("Details", "Valid tokens"), QString::number(valid));
    return details;
}

Details runDetails(const RunRecord& run)
{
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Run"), text(run.id));
    add(details, QT_TRANSLATE_NOOP("Details", "Variant"), text(run.variant));
    add(details, QT_TRANSLATE_NOOP("Details", "Converter"), text(run.converter));
    add(details, QT_TRANSLATE_NOOP("Details", "Checkpoint"), text(run.checkpoint));
    add(details, QT_TRANSLATE_NOOP("Details", "Refines"), text(run.parent));
    add(details, QT_TRANSLATE_NOOP("Details", "Calibration"), text(run.calibration));
    add(details, QT_TRANSLATE_NOOP("Details", "Cache elements"),
        QCoreApplication::translate("Details", "%1 of %2 per token and layer")
            .arg(run.cacheElements)
            .arg(run.originalCacheElements));
    if (const auto error = run.meanRelativeError())
        add(details, QT_TRANSLATE_NOOP("Details", "Mean relative error"), numberText(*error, 4));
    for (const std::string& stage : stagesOf(run))
        details.push_back({translated("Perplexity, %1").arg(text(stageLabel(stage))),
                           significantText(run.stages.at(stage).perplexity)});
    add(details, QT_TRANSLATE_NOOP("Details", "Seed"), QString::number(run.seed));
    add(details, QT_TRANSLATE_NOOP("Details", "Device"), text(run.device));
    add(details, QT_TRANSLATE_NOOP("Details", "Software"), text(run.software));
    add(details, QT_TRANSLATE_NOOP("Details", "Created"), text(run.created));
    add(details, QT_TRANSLATE_NOOP("Details", "Duration"), durationText(run.seconds));
    add(details, QT_TRANSLATE_NOOP("Details", "Peak memory"), bytesText(run.peakRssBytes));
    add(details, QT_TRANSLATE_NOOP("Details", "Draft"), text(run.draftPath));
    for (const std::string& warning : run.warnings)
        add(details, QT_TRANSLATE_NOOP("Details", "Warning"), text(warning));
    addSettings(details, run.settingsJson);
    return details;
}

Details acceptanceDetails(const AcceptanceRecord& record)
{
    const AcceptanceMetrics metrics = metricsOf(record);
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Measurement"), text(record.id));
    add(details, QT_TRANSLATE_NOOP("Details", "Target"), text(record.target));
    add(details, QT_TRANSLATE_NOOP("Details", "Draft"), text(record.run));
    add(details, QT_TRANSLATE_NOOP("Details", "Task"), text(record.task));
    add(details, QT_TRANSLATE_NOOP("Details", "Backend"), text(record.backend));
    add(details, QT_TRANSLATE_NOOP("Details", "Method"), text(record.method));
    add(details, QT_TRANSLATE_NOOP("Details", "Tokens drafted a step (k)"),
        QString::number(record.k));
    add(details, QT_TRANSLATE_NOOP("Details", "Temperature"), QString::number(record.temperature));
    add(details, QT_TRANSLATE_NOOP("Details", "Seed"), QString::number(record.seed));
    add(details, QT_TRANSLATE_NOOP("Details", "Acceptance rate (%)"),
        numberText(100 * metrics.acceptanceRate, 2));
    add(details, QT_TRANSLATE_NOOP("Details", "Mean acceptance length"),
        numberText(metrics.meanAcceptanceLength, 3));
    add(details, QT_TRANSLATE_NOOP("Details", "Per-prompt mean rate (%)"),
        numberText(100 * metrics.perPromptMeanRate, 2));
    add(details, QT_TRANSLATE_NOOP("Details", "Generated tokens"), QString::number(record.tokens));
    add(details, QT_TRANSLATE_NOOP("Details", "Steps"), QString::number(metrics.steps));
    add(details, QT_TRANSLATE_NOOP("Details", "Steps without a draft"),
        QString::number(record.plainSteps));
    add(details, QT_TRANSLATE_NOOP("Details", "Duration"), durationText(record.wallTime));
    addSettings(details, record.settingsJson);
    return details;
}

QString checkText(const ExportCheckRecord& check)
{
    if (!check.tried())
        return QCoreApplication::translate("Details", "not tried: %1").arg(text(check.remark));
    QString shown = QCoreApplication::translate(
                        "Details", "logits within %1 of their spread of %2, %3 of %4 greedy "
                                   "tokens equal (%5)")
                        .arg(check.logitDifference, 0, 'g', 2)
                        .arg(text(check.reference))
                        .arg(check.equalTokens)
                        .arg(check.greedyTokens)
                        .arg(text(check.software));
    if (!check.remark.empty())
        shown += QStringLiteral("; ") + text(check.remark);
    return shown;
}

Details exportRecordDetails(const ExportRecord& record)
{
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Export"), text(record.id));
    add(details, QT_TRANSLATE_NOOP("Details", "Draft"), text(record.run));
    add(details, QT_TRANSLATE_NOOP("Details", "Layout"), text(record.layout));
    add(details, QT_TRANSLATE_NOOP("Details", "Number format"), text(record.dtype));
    add(details, QT_TRANSLATE_NOOP("Details", "Directory"), text(record.path));
    add(details, QT_TRANSLATE_NOOP("Details", "Weights"), bytesText(record.weightBytes));
    for (const ExportCheckRecord& check : record.checks)
        details.push_back({translated("Check in %1").arg(text(check.stack)), checkText(check)});
    for (const std::string& kept : record.keeps)
        add(details, QT_TRANSLATE_NOOP("Details", "Keeps"), text(kept));
    for (const std::string& lost : record.loses)
        add(details, QT_TRANSLATE_NOOP("Details", "Loses"), text(lost));
    add(details, QT_TRANSLATE_NOOP("Details", "Software"), text(record.software));
    add(details, QT_TRANSLATE_NOOP("Details", "Created"), text(record.created));
    return details;
}

template <typename Record>
const Record* find(const std::vector<Record>& records, const QString& id)
{
    for (const Record& record : records)
        if (record.id == id.toStdString())
            return &record;
    return nullptr;
}

} // namespace

std::vector<Detail> detailsOf(const StudyData& study, const StudyItem& item)
{
    switch (item.kind) {
    case StudyItem::Kind::Checkpoint:
        if (const auto* record = find(study.checkpoints, item.id))
            return checkpointDetails(*record);
        break;
    case StudyItem::Kind::Run:
    case StudyItem::Kind::AcceptanceRun:
        if (const auto* record = find(study.runs, item.id))
            return runDetails(*record);
        break;
    case StudyItem::Kind::Calibration:
        if (const auto* record = find(study.calibrations, item.id))
            return calibrationDetails(*record);
        break;
    case StudyItem::Kind::Acceptance:
        if (const auto* record = find(study.acceptance, item.id))
            return acceptanceDetails(*record);
        break;
    case StudyItem::Kind::Export:
        if (const auto* record = find(study.exports, item.id))
            return exportRecordDetails(*record);
        break;
    case StudyItem::Kind::Group:
        break;
    }
    Details details;
    add(details, QT_TRANSLATE_NOOP("Details", "Study created"), text(study.created));
    add(details, QT_TRANSLATE_NOOP("Details", "Software"), text(study.software));
    return details;
}

void DetailsModel::setDetails(std::vector<Detail> details)
{
    if (details == m_details)
        return;
    beginResetModel();
    m_details = std::move(details);
    endResetModel();
}

QString DetailsModel::asText() const
{
    QString lines;
    for (const Detail& detail : m_details)
        lines += detail.name + QStringLiteral(": ") + detail.value + QLatin1Char('\n');
    return lines;
}

int DetailsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_details.size());
}

int DetailsModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : 2;
}

QVariant DetailsModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    const Detail& detail = m_details[static_cast<std::size_t>(index.row())];
    return index.column() == 0 ? detail.name : detail.value;
}

QVariant DetailsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == 0 ? tr("Property") : tr("Value");
}

} // namespace mla::ui
