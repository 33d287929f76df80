// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/new_run_dialog.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileInfo>
#include <QLabel>
#include <QPointer>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSpinBox>
#include <QStandardPaths>
#include <QVBoxLayout>

#include "widgets/common/plain_text.h"
#include "widgets/dialogs/converter_section.h"
#include "widgets/dialogs/path_field.h"

namespace mla::ui
{

namespace
{

constexpr int typingPauseMs = 250;

QString describe(const InspectReport& report)
{
    return NewRunDialog::tr("%1 · %2 layers · %3 heads, %4 KV heads of %5 · %6 M parameters · %7")
        .arg(text(report.modelType))
        .arg(report.layers)
        .arg(report.heads)
        .arg(report.kvHeads)
        .arg(report.headDim)
        .arg(static_cast<double>(report.parameters) / 1e6, 0, 'f', 1)
        .arg(text(report.dtype));
}

} // namespace

NewRunDialog::NewRunDialog(ModelInspector inspect, QWidget* parent)
    : QDialog(parent), m_inspect(std::move(inspect))
{
    setWindowTitle(tr("New run"));
    auto* left = new QVBoxLayout;
    auto* right = new QVBoxLayout;
    m_transmla = new ConverterSection("transmla", this);
    m_mha2mla = new ConverterSection("mha2mla", this);
    for (FormSection* section :
         {buildModels(), buildCalibration(), buildAcceptance(), buildOutput()})
        left->addWidget(section);
    for (FormSection* section : {static_cast<FormSection*>(m_transmla),
                                 static_cast<FormSection*>(m_mha2mla), buildRefinement()})
        right->addWidget(section);
    left->addStretch(1);
    right->addStretch(1);
    auto* content = new QWidget(this);
    auto* columns = new QHBoxLayout(content);
    columns->addLayout(left, 3);
    columns->addLayout(right, 2);
    auto* scroll = new QScrollArea(this);
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(scroll, 1);
    layout->addWidget(buildFooter());
    resize(QSize(1080, 700).boundedTo(screen()->availableSize() * 0.95));

    const QList<FormSection*> sections = findChildren<FormSection*>();
    m_sections.assign(sections.begin(), sections.end());
    for (ConverterSection* section : {m_transmla, m_mha2mla})
        connect(section, &ConverterSection::changed, this, &NewRunDialog::check);
    watch(m_checkpoint);
    watch(m_target);
    m_ready = true;
    proposePaths();
    check();
}

void NewRunDialog::watch(Probe& probe)
{
    probe.delay.setSingleShot(true);
    probe.delay.setInterval(typingPauseMs);
    connect(&probe.delay, &QTimer::timeout, this, [this, &probe] { inspect(probe); });
    connect(probe.field, &PathField::changed, this, [this, &probe] {
        probe.task.drop();
        probe.state = {ModelState::Status::Checking, {}, {}};
        probe.delay.start();
        showModel(probe);
    });
}

void NewRunDialog::inspect(Probe& probe)
{
    const QString path = probe.field->path();
    if (path.isEmpty()) {
        probe.state = {};
        showModel(probe);
        return;
    }
    probe.task.start(
        [inspect = m_inspect, path] { return inspect(filePath(path)); },
        [this, &probe](const Result<InspectReport>& report) {
            if (report)
                probe.state = {ModelState::Status::Good, {}, *report};
            else
                probe.state = {ModelState::Status::Bad, text(report.error().text()), {}};
            showModel(probe);
        });
}

void NewRunDialog::showModel(Probe& probe)
{
    const bool good = probe.state.status == ModelState::Status::Good;
    QStringList lines;
    if (good)
        lines << describe(probe.state.report);
    for (const std::string& warning : probe.state.report.warnings)
        lines << tr("Warning: %1").arg(text(warning));
    probe.summary->setText(lines.join(QLatin1Char('\n')));
    probe.summary->setVisible(good);
    if (&probe == &m_checkpoint) {
        const auto model = good ? std::optional(probe.state.report) : std::nullopt;
        m_transmla->setModel(model);
        m_mha2mla->setModel(model);
        if (good && !probe.state.report.config.isMla())
            askSpectra();
        proposePaths();
    }
    check();
}

void NewRunDialog::askSpectra()
{
    for (ConverterSection* section : {m_transmla, m_mha2mla})
        section->setSpectra(std::nullopt);
    if (!m_askSpectra)
        return;
    const QString checkpoint = m_checkpoint.field->path();
    m_askSpectra(checkpoint, [dialog = QPointer(this),
                              checkpoint](const Result<WeightSpectra>& spectra) {
        if (!dialog || !spectra || dialog->m_checkpoint.field->path() != checkpoint)
            return; // what is wrong with the checkpoint is said elsewhere
        dialog->m_transmla->setSpectra(*spectra);
        dialog->m_mha2mla->setSpectra(*spectra);
    });
}

/// Follows the checkpoint's name until the user chooses other paths.
void NewRunDialog::proposePaths()
{
    const QString name = QFileInfo(m_checkpoint.field->path()).fileName();
    if (!m_studyChosen && !name.isEmpty()) {
        const QDir documents(QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation));
        m_study->setPath(documents.filePath(name + QStringLiteral(".h5")));
    }
    const QFileInfo study(m_study->path());
    if (!m_draftsChosen && !m_study->path().isEmpty())
        m_drafts->setPath(
            QDir(study.path()).filePath(study.completeBaseName() + QStringLiteral("-drafts")));
}

void NewRunDialog::setCheckpoint(const QString& path)
{
    m_checkpoint.field->setPath(path);
}

void NewRunDialog::setStudy(const QString& path)
{
    m_study->setPath(path);
    m_studyChosen = true;
    proposePaths();
}

void NewRunDialog::setConversion(const ConvertSettings& settings)
{
    for (ConverterSection* section : {m_transmla, m_mha2mla})
        section->setSettings(settings);
}

RunForm NewRunDialog::form() const
{
    RunForm form = m_loaded;
    form.checkpoint = m_checkpoint.field->path();
    form.target = m_target.field->path();
    form.transmla = m_transmla->value();
    form.mha2mla = m_mha2mla->value();
    form.calibration.source = m_calibration->path().toStdString();
    form.calibration.sequences = m_sequences->value();
    form.calibration.length = m_length->value();
    form.partialRope = m_partialRope->isChecked();
    form.functional = m_functional->isChecked();
    form.refine.steps = m_steps->value();
    form.refine.batchTokens = m_batch->value();
    form.refine.learningRate = m_rate->value() > 0 ? std::optional(m_rate->value()) : std::nullopt;
    form.tasks = m_tasks->paths();
    form.accept.k = m_k->value();
    form.accept.maxNewTokens = m_newTokens->value();
    form.accept.minNewTokens = std::min(m_minTokens->value(), m_newTokens->value());
    form.accept.limit = m_limit->value() > 0 ? std::optional(m_limit->value()) : std::nullopt;
    form.accept.chatTemplate = m_chat->isChecked();
    form.accept.method = m_method->currentData().toString().toStdString();
    form.accept.backend = m_backend->currentText().toStdString();
    form.study = m_study->path();
    form.drafts = m_drafts->path();
    form.compute.device = m_device->currentText().toStdString();
    form.compute.threads = m_threads->value();
    form.compute.seed = static_cast<std::uint64_t>(m_seed->value());
    return form;
}

void NewRunDialog::setForm(const RunForm& form)
{
    m_loaded = form;
    m_studyChosen = m_draftsChosen = true; // they are not derived from the checkpoint's name
    m_transmla->setValue(form.transmla);
    m_mha2mla->setValue(form.mha2mla);
    m_checkpoint.field->setPath(form.checkpoint);
    m_target.field->setPath(form.target);
    m_calibration->setPath(text(form.calibration.source));
    m_sequences->setValue(form.calibration.sequences);
    m_length->setValue(form.calibration.length);
    m_partialRope->setChecked(form.partialRope);
    m_functional->setChecked(form.functional);
    m_steps->setValue(form.refine.steps);
    m_batch->setValue(form.refine.batchTokens);
    m_rate->setValue(form.refine.learningRate.value_or(0));
    m_tasks->setPath(form.tasks.join(QStringLiteral(", ")));
    m_k->setValue(form.accept.k);
    m_newTokens->setValue(form.accept.maxNewTokens);
    m_minTokens->setValue(form.accept.minNewTokens);
    m_limit->setValue(form.accept.limit.value_or(0));
    m_chat->setChecked(form.accept.chatTemplate);
    m_backend->setCurrentText(text(form.accept.backend));
    m_method->setCurrentIndex(std::max(0, m_method->findData(text(form.accept.chosenMethod()))));
    m_study->setPath(form.study);
    m_drafts->setPath(form.drafts);
    m_device->setCurrentText(text(form.compute.device));
    m_threads->setValue(form.compute.threads);
    m_seed->setValue(static_cast<int>(form.compute.seed));
    check();
}

void NewRunDialog::check()
{
    if (!m_ready)
        return;
    m_issues = checkForm(form(), m_checkpoint.state, m_target.state);
    for (FormSection* section : m_sections)
        section->showIssues(m_issues);
    showReason();
}

/// Start is enabled, or the first reason why not stands beside it.
void NewRunDialog::showReason()
{
    const Issue* blocked = firstBlocking(m_issues);
    m_start->setEnabled(!blocked);
    m_start->setToolTip(blocked ? blocked->text : QString());
    m_reason->setText(blocked ? tr("Not ready: %1").arg(blocked->text) : tr("Ready to start."));
}

} // namespace mla::ui
