// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/run_form.h"

#include <algorithm>

#include <QCoreApplication>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "core/backends/python_environment.h"
#include "widgets/common/conversion_text.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

QString tr(const char* text)
{
    return QCoreApplication::translate("RunForm", text);
}

class Issues
{
public:
    void block(Field field, const QString& text) { m_list.push_back({field, true, text}); }
    void warn(Field field, const QString& text) { m_list.push_back({field, false, text}); }
    std::vector<Issue> take() { return std::move(m_list); }

private:
    std::vector<Issue> m_list;
};

void checkModels(Issues& issues, const RunForm& form, const ModelState& checkpoint,
                 const ModelState& target)
{
    using S = ModelState::Status;
    if (form.checkpoint.isEmpty())
        issues.block(Field::Checkpoint, tr("Choose the checkpoint folder of the draft model."));
    else if (checkpoint.status == S::Bad)
        issues.block(Field::Checkpoint, checkpoint.problem);
    else if (checkpoint.status != S::Good)
        issues.block(Field::Checkpoint, tr("Reading the checkpoint…"));
    else if (checkpoint.report.attention != "gqa")
        issues.block(Field::Checkpoint,
                     tr("This is an MLA draft already; choose the original checkpoint."));
    if (form.target.isEmpty())
        return;
    if (target.status == S::Bad)
        issues.block(Field::Target, target.problem);
    else if (target.status != S::Good)
        issues.block(Field::Target, tr("Reading the target…"));
    else if (checkpoint.status == S::Good && target.report.vocabSize != checkpoint.report.vocabSize)
        issues.warn(
            Field::Target,
            tr("Vocabularies differ in size (%1 and %2): the tokenizers must agree, and ids "
               "that only one has are never chosen.")
                .arg(target.report.vocabSize)
                .arg(checkpoint.report.vocabSize));
}

/// The field that an issue of a converter's setting stands under.
Field fieldOf(ConversionSetting setting, bool transmla)
{
    switch (setting) {
    case ConversionSetting::QkRopeHeadDim:
        return transmla ? Field::TransmlaRope : Field::Mha2mlaRope;
    case ConversionSetting::KvLoraRank:
        return transmla ? Field::TransmlaRank : Field::Mha2mlaRank;
    case ConversionSetting::Freqfold:
        return Field::TransmlaFold;
    case ConversionSetting::RopeSelect:
    case ConversionSetting::Svd:
        return Field::Mha2mlaSelection;
    default:
        return transmla ? Field::TransmlaModel : Field::Mha2mlaModel;
    }
}

void checkConverter(Issues& issues, const ConvertSettings& settings, const ModelConfig& model)
{
    for (const ConversionIssue& issue : conversionIssues(model, settings)) {
        const Field field = fieldOf(issue.setting, settings.converter == "transmla");
        const QString text = issueText(issue, model, settings);
        if (issue.blocking)
            issues.block(field, text);
        else
            issues.warn(field, text);
    }
}

void checkConverters(Issues& issues, const RunForm& form, const ModelState& checkpoint)
{
    if (!form.transmla.enabled && !form.mha2mla.enabled)
        issues.block(Field::Converters, tr("Choose at least one converter."));
    const ModelConfig& model = checkpoint.report.config;
    if (checkpoint.status != ModelState::Status::Good || model.isMla())
        return; // a draft is refused as a checkpoint
    for (const ConverterForm* converter : {&form.transmla, &form.mha2mla})
        if (converter->enabled)
            checkConverter(issues, converter->settings, model);
}

void checkCalibration(Issues& issues, const RunForm& form)
{
    const QString source = text(form.calibration.source);
    if (source.isEmpty()) {
        issues.block(Field::Calibration, tr("Write “self”, or choose text or JSONL files."));
        return;
    }
    if (source == QLatin1String("self"))
        return;
    const QString files = source.startsWith(QLatin1String("self:")) ? source.mid(5) : source;
    for (const QString& file : files.split(QLatin1Char(','), Qt::SkipEmptyParts))
        if (!QFileInfo(file.trimmed()).isFile())
            issues.block(Field::Calibration, tr("No such file: %1").arg(file.trimmed()));
}

void checkRefinement(Issues& issues, const RunForm& form)
{
    if (!form.partialRope && !form.functional)
        issues.warn(Field::Objectives, tr("Without an objective drafts are only converted."));
    else if (!form.partialRope)
        issues.warn(Field::Objectives,
                    tr("Without partial-rope there is no baseline to compare with."));
    if (form.refine.batchTokens < form.calibration.length)
        issues.warn(Field::Refinement,
                    tr("A batch holds whole sequences: at least %1 tokens will be used.")
                        .arg(form.calibration.length));
}

void checkTasks(Issues& issues, const RunForm& form)
{
    QStringList names;
    for (const QString& task : form.tasks) {
        if (!QFileInfo(task).isFile())
            issues.block(Field::Tasks, tr("No such file: %1").arg(task));
        const QString name = QFileInfo(task).completeBaseName();
        if (names.contains(name))
            issues.block(Field::Tasks, tr("Two task files are named %1.").arg(name));
        names << name;
    }
    const bool foreign = form.accept.backend != "native";
    if ((form.accept.chatTemplate || foreign) && !form.tasks.isEmpty())
        if (const auto python = findPython(form.compute.python); !python)
            issues.block(foreign ? Field::Backend : Field::ChatTemplate,
                         text(python.error().text()));
    if (form.tasks.isEmpty())
        issues.warn(Field::Tasks, tr("Without tasks acceptance is not measured."));
}

void checkOutput(Issues& issues, const RunForm& form)
{
    const QFileInfo study(form.study);
    if (form.study.isEmpty())
        issues.block(Field::Study, tr("Choose where the study is stored."));
    else if (study.isDir())
        issues.block(Field::Study, tr("This is a folder; choose a file name."));
    else if (study.suffix() != QLatin1String("h5"))
        issues.block(Field::Study, tr("The name must end in .h5."));
    else if (study.exists())
        issues.warn(Field::Study,
                    tr("This study exists: the results are added, and runs it has with "
                       "the same settings are kept."));
    if (form.drafts.isEmpty())
        issues.block(Field::Drafts, tr("Choose the folder that receives the drafts."));
    else if (QFileInfo(form.drafts).isFile())
        issues.block(Field::Drafts, tr("This is a file; choose a folder."));
}

} // namespace

ConvertSettings halvedCache(const std::string& converter, const ModelConfig& model)
{
    ConvertSettings settings;
    settings.converter = converter;
    settings.qkRopeHeadDim = std::max(2, model.headDim / 2);
    const double half = static_cast<double>(originalCacheElements(model)) / 2.0;
    const Result<int> rank = rankForBudget(model, settings, half);
    settings.kvLoraRank = rank ? *rank : 1;
    return settings;
}

std::vector<Issue> checkForm(const RunForm& form, const ModelState& checkpoint,
                             const ModelState& target)
{
    Issues issues;
    checkModels(issues, form, checkpoint, target);
    checkConverters(issues, form, checkpoint);
    checkCalibration(issues, form);
    checkRefinement(issues, form);
    checkTasks(issues, form);
    checkOutput(issues, form);
    return issues.take();
}

StudyPlan planFromForm(const RunForm& form)
{
    const auto absolute = [](const QString& path) {
        return path.isEmpty() ? std::filesystem::path()
                              : filePath(QFileInfo(path).absoluteFilePath());
    };
    StudyPlan plan;
    plan.checkpoint = absolute(form.checkpoint);
    plan.target = absolute(form.target);
    plan.study = absolute(form.study);
    plan.drafts = absolute(form.drafts);
    plan.calibration = form.calibration;
    for (const ConverterForm* converter : {&form.transmla, &form.mha2mla})
        if (converter->enabled)
            plan.conversions.push_back(converter->settings);
    plan.objectives.clear();
    if (form.partialRope)
        plan.objectives.emplace_back("partial-rope");
    if (form.functional)
        plan.objectives.emplace_back("functional");
    plan.refine = form.refine;
    plan.accept = form.accept;
    plan.accept.tasks.clear();
    for (const QString& task : form.tasks)
        plan.accept.tasks.push_back(absolute(task));
    plan.compute = form.compute;
    plan.resume = QFileInfo::exists(form.study); // adds to what is there
    return plan;
}

const Issue* firstBlocking(const std::vector<Issue>& issues)
{
    const auto first = std::ranges::find_if(issues, &Issue::blocking);
    return first == issues.end() ? nullptr : &*first;
}

RunForm formFromPlan(const StudyPlan& plan)
{
    RunForm form;
    form.checkpoint = text(plan.checkpoint);
    form.target = text(plan.target);
    form.study = text(plan.study);
    form.drafts = text(plan.drafts);
    form.calibration = plan.calibration;
    for (const ConvertSettings& conversion : plan.conversions) {
        ConverterForm& converter = conversion.converter == "mha2mla" ? form.mha2mla : form.transmla;
        if (!converter.enabled)
            converter = {true, conversion};
    }
    const auto has = [&plan](const char* objective) {
        return std::ranges::find(plan.objectives, objective) != plan.objectives.end();
    };
    form.partialRope = has("partial-rope");
    form.functional = has("functional");
    form.refine = plan.refine;
    form.accept = plan.accept;
    for (const std::filesystem::path& task : plan.accept.tasks)
        form.tasks << text(task);
    form.compute = plan.compute;
    return form;
}

QByteArray planText(const StudyPlan& plan)
{
    return QByteArray::fromStdString(toJson(plan).dump(2) + "\n");
}

/// A here-document: nothing in the plan needs quoting.
QString commandLineOf(const StudyPlan& plan)
{
    return QStringLiteral("mla-draft run - <<'PLAN'\n%1PLAN\n")
        .arg(QString::fromUtf8(planText(plan)));
}

} // namespace mla::ui
