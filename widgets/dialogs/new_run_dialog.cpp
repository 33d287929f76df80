// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/new_run_dialog.h"

#include <algorithm>
#include <limits>

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QGuiApplication>
#include <QLabel>
#include <QLocale>
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

QWidget* inRow(std::initializer_list<QWidget*> widgets)
{
    auto* row = new QWidget;
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    for (QWidget* widget : widgets)
        layout->addWidget(widget);
    layout->addStretch(1);
    row->setFocusProxy(*widgets.begin());
    return row;
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

QSpinBox* NewRunDialog::spin(int low, int high, int value, const QString& name)
{
    auto* box = new QSpinBox(this);
    box->setRange(low, high);
    box->setValue(value);
    box->setAccessibleName(name);
    connect(box, &QSpinBox::valueChanged, this, &NewRunDialog::check);
    return box;
}

FormSection* NewRunDialog::buildModels()
{
    auto* section = new FormSection(tr("Models"), this);
    m_checkpoint.field = new PathField(PathField::Kind::Folder, tr("Checkpoint folder"), this);
    m_target.field = new PathField(PathField::Kind::Folder, tr("Target folder"), this);
    m_target.field->setPlaceholder(tr("the checkpoint itself"));
    for (Probe* probe : {&m_checkpoint, &m_target}) {
        probe->summary = new QLabel(section);
        probe->summary->setWordWrap(true);
        probe->summary->hide();
    }
    section->addField(Field::Checkpoint, tr("&Checkpoint"), m_checkpoint.field);
    section->addNote(m_checkpoint.summary);
    section->addField(Field::Target, tr("&Target"), m_target.field);
    section->addNote(m_target.summary);
    return section;
}

FormSection* NewRunDialog::buildCalibration()
{
    const CalibrationSettings defaults;
    auto* section = new FormSection(tr("Calibration"), this);
    m_calibration =
        new PathField(PathField::Kind::OpenFiles, tr("Calibration text or JSONL files"), this);
    m_calibration->setPath(text(defaults.source));
    m_calibration->edit()->setToolTip(
        tr("“self” lets the model write its own calibration text; or text and JSONL files, "
           "separated by commas"));
    connect(m_calibration, &PathField::changed, this, &NewRunDialog::check);
    m_sequences = spin(1, 1000000, defaults.sequences, tr("Calibration sequences"));
    m_length = spin(8, 65536, defaults.length, tr("Tokens of a calibration sequence"));
    section->addField(Field::Calibration, tr("&Source"), m_calibration);
    section->addRow(tr("Sequences"), inRow({m_sequences, new QLabel(tr("of"), section), m_length,
                                            new QLabel(tr("tokens"), section)}));
    return section;
}

FormSection* NewRunDialog::buildRefinement()
{
    const RefineSettings defaults;
    auto* section = new FormSection(tr("Refinement and computing"), this);
    m_functional = new QCheckBox(tr("&functional"), this);
    m_partialRope = new QCheckBox(tr("&partial-rope"), this);
    m_functional->setToolTip(tr("Match the attention output after the output projection"));
    m_partialRope->setToolTip(tr("The baseline: match keys and values before attention"));
    for (QCheckBox* box : {m_functional, m_partialRope}) {
        box->setChecked(true);
        connect(box, &QCheckBox::toggled, this, &NewRunDialog::check);
    }
    m_steps = spin(1, 1000000, defaults.steps, tr("Optimizer steps a layer"));
    m_batch = spin(1, 1 << 24, defaults.batchTokens, tr("Tokens a step"));
    m_rate = new QDoubleSpinBox(this);
    m_rate->setDecimals(5);
    m_rate->setRange(0, 1);
    m_rate->setSingleStep(0.001);
    m_rate->setSpecialValueText(tr("default"));
    m_rate->setToolTip(tr("Default: 0.002 for TransMLA, 0.004 for MHA2MLA"));
    m_rate->setAccessibleName(tr("Learning rate"));
    m_device = new QComboBox(this);
    m_device->setEditable(true);
    m_device->addItems({QStringLiteral("auto"), QStringLiteral("cpu"), QStringLiteral("cuda")});
    m_device->setAccessibleName(tr("Device"));
    m_threads = spin(0, 1024, 0, tr("Threads"));
    m_threads->setSpecialValueText(tr("all cores"));
    m_seed = spin(0, std::numeric_limits<int>::max(), 0, tr("Seed"));
    section->addField(Field::Objectives, tr("Objectives"), inRow({m_functional, m_partialRope}));
    section->addRow(tr("Steps a la&yer"), m_steps);
    section->addRow(tr("&Learning rate"), m_rate);
    section->addField(Field::Refinement, tr("Tokens a step"), m_batch);
    section->addRow(tr("&Device"), m_device);
    section->addRow(tr("Threads"), m_threads);
    section->addRow(tr("Seed"), m_seed);
    return section;
}

FormSection* NewRunDialog::buildAcceptance()
{
    const AcceptSettings defaults;
    auto* section = new FormSection(tr("Acceptance"), this);
    m_tasks = new PathField(PathField::Kind::OpenFiles, tr("Task files"), this);
    m_tasks->setFilter(tr("Tasks (*.jsonl);;All files (*)"));
    m_tasks->setPlaceholder(tr("JSONL files, separated by commas"));
    connect(m_tasks, &PathField::changed, this, &NewRunDialog::check);
    m_k = spin(1, 64, defaults.k, tr("Tokens drafted a step"));
    m_newTokens = spin(1, 65536, defaults.maxNewTokens, tr("New tokens at most"));
    m_minTokens = spin(0, 65536, defaults.minNewTokens, tr("New tokens at least"));
    m_limit = spin(0, 1000000, 0, tr("Prompts of a task"));
    m_limit->setSpecialValueText(tr("all"));
    m_method = new QComboBox(this);
    m_method->addItem(tr("replay"), QStringLiteral("replay"));
    m_method->addItem(tr("speculative"), QStringLiteral("speculative"));
    m_method->setAccessibleName(tr("Method"));
    m_method->setToolTip(tr("Replay counts on the target's own text; speculative runs the engine "
                            "and measures speed"));
    m_chat = new QCheckBox(tr("in the target's c&hat template"), this);
    m_chat->setToolTip(
        tr("Each prompt becomes a user's turn. Transformers renders the template, in "
           "the Python environment of installer/setup.sh --python or MLA_PYTHON"));
    m_chat->setAccessibleName(tr("Prompts in the target's chat template"));
    connect(m_chat, &QCheckBox::toggled, this, &NewRunDialog::check);
    section->addField(Field::Tasks, tr("T&asks"), m_tasks);
    section->addField(Field::ChatTemplate, tr("Prompts"), m_chat);
    section->addRow(tr("Drafted a step, &k"),
                    inRow({m_k, new QLabel(tr("method"), section), m_method}));
    section->addRow(tr("New tokens"),
                    inRow({m_minTokens, new QLabel(tr("to"), section), m_newTokens,
                           new QLabel(tr("prompts a task"), section), m_limit}));
    return section;
}

FormSection* NewRunDialog::buildOutput()
{
    auto* section = new FormSection(tr("Output"), this);
    m_study = new PathField(PathField::Kind::SaveFile, tr("Study file"), this);
    m_study->setFilter(tr("Studies (*.h5)"));
    m_drafts = new PathField(PathField::Kind::Folder, tr("Drafts folder"), this);
    connect(m_study, &PathField::editedByUser, this, [this] {
        m_studyChosen = true;
        proposePaths();
    });
    connect(m_drafts, &PathField::editedByUser, this, [this] { m_draftsChosen = true; });
    for (PathField* field : {m_study, m_drafts})
        connect(field, &PathField::changed, this, &NewRunDialog::check);
    section->addField(Field::Study, tr("St&udy"), m_study);
    section->addField(Field::Drafts, tr("D&rafts"), m_drafts);
    return section;
}

QWidget* NewRunDialog::buildFooter()
{
    auto* footer = new QWidget(this);
    auto* line = new QHBoxLayout(footer);
    m_reason = new QLabel(footer);
    m_reason->setWordWrap(true);
    auto* buttons = new QDialogButtonBox(footer);
    m_start = buttons->addButton(tr("Start"), QDialogButtonBox::AcceptRole);
    m_start->setDefault(true);
    buttons->addButton(QDialogButtonBox::Cancel);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        check();
        if (blocked())
            return;
        emit planned(planFromForm(form()));
        accept();
    });
    line->addWidget(m_reason, 1);
    line->addWidget(buttons);
    return footer;
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
        proposePaths();
    }
    check();
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
    RunForm form;
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
    if (m_rate->value() > 0)
        form.refine.learningRate = m_rate->value();
    form.tasks = m_tasks->paths();
    form.accept.k = m_k->value();
    form.accept.maxNewTokens = m_newTokens->value();
    form.accept.minNewTokens = std::min(m_minTokens->value(), m_newTokens->value());
    if (m_limit->value() > 0)
        form.accept.limit = m_limit->value();
    form.accept.chatTemplate = m_chat->isChecked();
    form.accept.method = m_method->currentData().toString().toStdString();
    form.study = m_study->path();
    form.drafts = m_drafts->path();
    form.compute.device = m_device->currentText().toStdString();
    form.compute.threads = m_threads->value();
    form.compute.seed = static_cast<std::uint64_t>(m_seed->value());
    return form;
}

bool NewRunDialog::blocked() const
{
    return std::any_of(m_issues.begin(), m_issues.end(),
                       [](const Issue& issue) { return issue.blocking; });
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
    const auto first = std::find_if(m_issues.begin(), m_issues.end(),
                                    [](const Issue& issue) { return issue.blocking; });
    const bool blocked = first != m_issues.end();
    m_start->setEnabled(!blocked);
    m_start->setToolTip(blocked ? first->text : QString());
    m_reason->setText(blocked ? tr("Not ready: %1").arg(first->text) : tr("Ready to start."));
}

} // namespace mla::ui
