// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/export_draft_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QPushButton>
#include <QScreen>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "widgets/common/plain_text.h"
#include "widgets/dialogs/form_section.h"
#include "widgets/dialogs/path_field.h"

namespace mla::ui
{

namespace
{

constexpr int typingPauseMs = 250;

QString bulletList(const QString& title, const std::vector<std::string>& entries)
{
    if (entries.empty())
        return {};
    QString html = QStringLiteral("<p><b>%1</b></p><ul>").arg(title.toHtmlEscaped());
    for (const std::string& entry : entries)
        html += QStringLiteral("<li>%1</li>").arg(text(entry).toHtmlEscaped());
    return html + QStringLiteral("</ul>");
}

QString describe(const LayoutDescription& layout)
{
    QString html =
        QStringLiteral("<p>%1</p>")
            .arg(ExportDraftDialog::tr("Loads in %1.").arg(text(layout.loadsIn)).toHtmlEscaped());
    if (!layout.refusal.empty())
        return html + bulletList(ExportDraftDialog::tr("Cannot hold this draft"), {layout.refusal});
    html += bulletList(ExportDraftDialog::tr("Keeps"), layout.keeps);
    if (layout.loses.empty())
        return html + QStringLiteral("<p><b>%1</b></p>")
                          .arg(ExportDraftDialog::tr("Loses nothing").toHtmlEscaped());
    return html + bulletList(ExportDraftDialog::tr("Loses"), layout.loses);
}

} // namespace

ExportDraftDialog::ExportDraftDialog(DraftDescriber describe, QWidget* parent)
    : QDialog(parent), m_describe(std::move(describe))
{
    setWindowTitle(tr("Export draft"));
    m_section = buildForm();
    m_description = new QTextBrowser(this);
    m_description->setAccessibleName(tr("What the layout keeps and loses"));
    auto* columns = new QHBoxLayout;
    columns->addWidget(m_section, 3);
    columns->addWidget(m_description, 2);
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(columns, 1);
    layout->addWidget(buildFooter());
    resize(QSize(940, 420).boundedTo(screen()->availableSize() * 0.95));
    m_delay.setSingleShot(true);
    m_delay.setInterval(typingPauseMs);
    connect(&m_delay, &QTimer::timeout, this, &ExportDraftDialog::read);
    m_ready = true;
    offerLayouts();
    check();
}

FormSection* ExportDraftDialog::buildForm()
{
    auto* section = new FormSection(tr("Draft and layout"), this);
    m_draft = new PathField(PathField::Kind::Folder, tr("Draft folder"), this);
    m_layout = new QComboBox(this);
    m_layout->setAccessibleName(tr("Layout"));
    for (const std::string& name : exportLayoutNames())
        m_layout->addItem(text(name), text(name));
    m_dtype = new QComboBox(this);
    m_dtype->setAccessibleName(tr("Number format of the weights"));
    m_dtype->addItem(tr("as in the draft"), QString());
    for (const char* name : {"fp32", "fp16", "bf16"})
        m_dtype->addItem(QLatin1String(name), QLatin1String(name));
    m_shard = new QDoubleSpinBox(this);
    m_shard->setRange(0.001, 1000);
    m_shard->setDecimals(3);
    m_shard->setValue(ExportForm().shardGigabytes);
    m_shard->setSuffix(tr(" GB"));
    m_shard->setAccessibleName(tr("Largest file of weights"));
    m_shard->setToolTip(tr("Weights beyond it go to several files"));
    m_output = new PathField(PathField::Kind::Folder, tr("Folder to write"), this);
    m_overwrite = new QCheckBox(tr("&Replace the folder if it exists"), this);
    m_verify = new QCheckBox(tr("&Verify in Transformers and vLLM"), this);
    m_verify->setChecked(true);
    m_verify->setToolTip(tr("Loads the result in this program, in Transformers and in vLLM, as far "
                            "as they are installed, and compares logits and greedy texts"));
    m_record = new QCheckBox(tr("Re&cord it in the open study"), this);
    m_record->setEnabled(false);
    section->addField(Field::ExportDraft, tr("&Draft"), m_draft);
    section->addField(Field::ExportLayout, tr("&Layout"), m_layout);
    section->addRow(tr("&Weights"), m_dtype);
    section->addRow(tr("Largest &file"), m_shard);
    section->addField(Field::ExportOutput, tr("Write &to"), m_output);
    section->addRow({}, m_overwrite);
    section->addRow({}, m_verify);
    section->addRow({}, m_record);

    connect(m_draft, &PathField::changed, this, [this] {
        m_task.drop();
        m_state = {DraftState::Status::Checking, {}, {}};
        m_delay.start();
        proposeOutput();
        offerLayouts();
    });
    connect(m_layout, &QComboBox::currentIndexChanged, this, [this] {
        proposeOutput();
        showLayout();
    });
    connect(m_output, &PathField::editedByUser, this, [this] { m_outputChosen = true; });
    connect(m_output, &PathField::changed, this, &ExportDraftDialog::check);
    connect(m_overwrite, &QCheckBox::toggled, this, &ExportDraftDialog::check);
    return section;
}

QWidget* ExportDraftDialog::buildFooter()
{
    auto* footer = new QWidget(this);
    auto* line = new QHBoxLayout(footer);
    line->setContentsMargins(0, 0, 0, 0);
    m_reason = new QLabel(footer);
    m_reason->setWordWrap(true);
    m_reason->setTextFormat(Qt::PlainText);
    auto* buttons = new QDialogButtonBox(footer);
    m_start = buttons->addButton(tr("Export"), QDialogButtonBox::AcceptRole);
    m_start->setDefault(true);
    buttons->addButton(QDialogButtonBox::Cancel);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        check(); // the disk may have changed since
        if (!m_start->isEnabled())
            return;
        emit planned(requestFromForm(form()));
        accept();
    });
    line->addWidget(m_reason, 1);
    line->addWidget(buttons);
    return footer;
}

ExportForm ExportDraftDialog::form() const
{
    ExportForm form;
    form.draft = m_draft->path();
    form.output = m_output->path();
    form.layout = m_layout->currentData().toString();
    form.dtype = m_dtype->currentData().toString();
    form.shardGigabytes = m_shard->value();
    form.verify = m_verify->isChecked();
    form.overwrite = m_overwrite->isChecked();
    if (m_record->isChecked())
        form.study = m_study;
    return form;
}

void ExportDraftDialog::setDraft(const QString& path)
{
    m_draft->setPath(path);
}

void ExportDraftDialog::setStudy(const QString& path)
{
    m_study = path;
    m_record->setEnabled(!path.isEmpty());
    m_record->setChecked(!path.isEmpty());
    m_record->setToolTip(path);
}

void ExportDraftDialog::read()
{
    const QString path = m_draft->path();
    if (path.isEmpty()) {
        m_state = {};
        offerLayouts();
        return;
    }
    m_task.start([describe = m_describe, path] { return describe(filePath(path)); },
                 [this](const Result<std::vector<LayoutDescription>>& layouts) {
                     if (layouts)
                         m_state = {DraftState::Status::Good, {}, *layouts};
                     else
                         m_state = {DraftState::Status::Bad, text(layouts.error().text()), {}};
                     offerLayouts();
                 });
}

/// Layouts that cannot hold the draft stay in the list, so that their reason can be read.
void ExportDraftDialog::offerLayouts()
{
    for (int row = 0; row < m_layout->count(); ++row) {
        const QString name = m_layout->itemData(row).toString();
        const LayoutDescription* layout = m_state.find(name);
        const bool refused = layout && !layout->refusal.empty();
        m_layout->setItemText(row, refused ? tr("%1 (cannot hold this draft)").arg(name) : name);
    }
    showLayout();
}

void ExportDraftDialog::showLayout()
{
    if (!m_ready)
        return;
    const LayoutDescription* layout = m_state.find(m_layout->currentData().toString());
    m_description->setHtml(
        layout ? describe(*layout)
               : QStringLiteral("<p>%1</p>")
                     .arg(tr("What a layout keeps and loses shows here once the draft is read.")));
    check();
}

/// Follows the draft and the layout until the user chooses another folder.
void ExportDraftDialog::proposeOutput()
{
    const QString draft = QDir::cleanPath(m_draft->path());
    if (!m_outputChosen && !m_draft->path().isEmpty())
        m_output->setPath(draft + QLatin1Char('-') + m_layout->currentData().toString());
}

void ExportDraftDialog::check()
{
    if (!m_ready)
        return;
    m_issues = checkExport(form(), m_state);
    m_section->showIssues(m_issues);
    const Issue* blocked = firstBlocking(m_issues);
    m_start->setEnabled(!blocked);
    m_reason->setText(blocked ? tr("Not ready: %1").arg(blocked->text) : tr("Ready to export."));
}

} // namespace mla::ui
