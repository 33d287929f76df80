// SPDX-License-Identifier: GPL-3.0-or-later
// NewRunDialog's fields, section by section.
#include <limits>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include "core/base/file.h"
#include "core/pipeline/study_plan_file.h"
#include "widgets/common/plain_text.h"
#include "widgets/dialogs/form_section.h"
#include "widgets/dialogs/new_run_dialog.h"
#include "widgets/dialogs/path_field.h"

namespace mla::ui
{

namespace
{

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
    m_backend = new QComboBox(this);
    m_backend->addItems({QStringLiteral("native"), QStringLiteral("hf"), QStringLiteral("vllm")});
    m_backend->setAccessibleName(tr("Backend"));
    m_backend->setToolTip(tr("native: this program; hf: assisted generation of Transformers; vllm: "
                             "speculative decoding of vLLM, both in the environment of "
                             "installer/setup.sh --backends"));
    // Only the native engine replays.
    connect(m_backend, &QComboBox::currentIndexChanged, this, [this](int backend) {
        m_method->setEnabled(backend == 0);
        if (backend != 0)
            m_method->setCurrentIndex(m_method->findData(QStringLiteral("speculative")));
        check();
    });
    m_chat = new QCheckBox(tr("in the target's c&hat template"), this);
    m_chat->setToolTip(
        tr("Each prompt becomes a user's turn. Transformers renders the template, in "
           "the Python environment of installer/setup.sh --python or MLA_PYTHON"));
    m_chat->setAccessibleName(tr("Prompts in the target's chat template"));
    connect(m_chat, &QCheckBox::toggled, this, &NewRunDialog::check);
    section->addField(Field::Tasks, tr("T&asks"), m_tasks);
    section->addField(Field::ChatTemplate, tr("Prompts"), m_chat);
    section->addField(Field::Backend, tr("Drafted a step, &k"),
                      inRow({m_k, new QLabel(tr("by"), section), m_method,
                             new QLabel(tr("in"), section), m_backend}));
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
        if (!canStart())
            return;
        emit planned(planFromForm(form()));
        accept();
    });
    line->addWidget(m_reason, 1);
    addPlanButtons(line);
    line->addWidget(buttons);
    return footer;
}

void NewRunDialog::addPlanButtons(QHBoxLayout* line)
{
    const auto button = [&](const QString& label, const QString& tip, auto&& action) {
        auto* made = new QPushButton(label, this);
        made->setAutoDefault(false);
        made->setToolTip(tip);
        connect(made, &QPushButton::clicked, this, action);
        line->addWidget(made);
    };
    button(tr("&Open plan…"), tr("Fill in what a saved plan says"), [this] { askForPlan(false); });
    button(tr("Sa&ve plan…"), tr("Write these settings as JSON, for mla-draft run and for later"),
           [this] { askForPlan(true); });
    button(tr("Copy as co&mmand"), tr("Copy a shell command that does the same without a window"),
           [this] { copyCommandLine(); });
}

void NewRunDialog::askForPlan(bool save)
{
    auto* dialog = new QFileDialog(this, save ? tr("Save plan") : tr("Open plan"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setNameFilters({tr("Plans (*.json)"), tr("All files (*)")});
    dialog->setAcceptMode(save ? QFileDialog::AcceptSave : QFileDialog::AcceptOpen);
    if (save)
        dialog->setDefaultSuffix(QStringLiteral("json"));
    else
        dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this,
            save ? &NewRunDialog::savePlan : &NewRunDialog::loadPlan);
    dialog->open();
}

void NewRunDialog::savePlan(const QString& file)
{
    const Status written =
        writeFileAtomically(filePath(file), planText(planFromForm(form())).toStdString());
    if (!written)
        m_reason->setText(tr("The plan was not written: %1").arg(text(written.error().text())));
}

void NewRunDialog::loadPlan(const QString& file)
{
    const Result<StudyPlan> plan = readStudyPlan(filePath(file));
    if (plan)
        setForm(formFromPlan(*plan));
    else
        m_reason->setText(tr("The plan could not be read: %1").arg(text(plan.error().text())));
}

void NewRunDialog::copyCommandLine() const
{
    QGuiApplication::clipboard()->setText(commandLineOf(planFromForm(form())));
}

} // namespace mla::ui
