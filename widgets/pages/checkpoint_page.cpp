// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/checkpoint_page.h"

#include <QAction>
#include <QClipboard>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QGroupBox>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/format.h"
#include "widgets/common/plain_text.h"
#include "widgets/dialogs/path_field.h"
#include "widgets/pages/cache_planner.h"

namespace mla::ui
{

namespace
{

/// Whether a path that is being typed is worth reading already.
bool looksLikeModel(const QString& path)
{
    const QFileInfo info(path);
    return info.isDir() ? QFileInfo::exists(path + QStringLiteral("/config.json"))
                        : info.isFile() && info.suffix() == QLatin1String("gguf");
}

QString summaryText(const InspectReport& report)
{
    return CheckpointPage::tr("<b>%1</b> · %2 layers · %3 heads, %4 KV heads of %5 · %6 M "
                              "parameters · %7 · %8")
        .arg(text(report.attention == "mla" ? report.modelType + ", MLA" : report.modelType))
        .arg(report.layers)
        .arg(report.heads)
        .arg(report.kvHeads)
        .arg(report.headDim)
        .arg(static_cast<double>(report.parameters) / 1e6, 0, 'f', 1)
        .arg(text(report.dtype), bytesText(report.weightBytes));
}

} // namespace

CheckpointPage::CheckpointPage(StudyDocument& document, SelectionModel& selection,
                               ModelInspector inspect, TensorMeter measure, QWidget* parent)
    : Page(document, selection, parent), m_inspect(std::move(inspect)),
      m_config(new DetailsModel(this)), m_tensors(new TensorView(std::move(measure), this)),
      m_planner(new CachePlanner(this))
{
    setAcceptDrops(true);
    auto* cache = new QGroupBox(tr("KV cache"), this);
    auto* inside = new QVBoxLayout(cache);
    inside->addWidget(m_planner);
    auto* right = new QSplitter(Qt::Vertical, this);
    right->addWidget(m_tensors);
    right->addWidget(cache);
    right->setSizes({290, 330});
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(buildConfig());
    splitter->addWidget(right);
    splitter->setSizes({300, 700});
    splitter->setStretchFactor(1, 1);
    for (QSplitter* each : {right, splitter})
        each->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(buildSource());
    layout->addWidget(m_state, 1);
    connect(m_tensors, &TensorView::failed, this, &Page::failed);
    connect(m_planner, &CachePlanner::exportFailed, this, &Page::failed);
    connect(m_planner, &CachePlanner::runRequested, this,
            [this](const ConvertSettings& settings) { emit runRequested(m_model, settings); });
    showNothing(tr("No checkpoint is open"),
                tr("Choose a checkpoint or draft folder above, drop one here, or take one from the "
                   "study."));
    CheckpointPage::refresh();
}

QWidget* CheckpointPage::buildSource()
{
    auto* source = new QWidget(this);
    m_path = new PathField(PathField::Kind::Folder, tr("Checkpoint folder"), source);
    m_path->setPlaceholder(tr("Folder with config.json and weights"));
    auto* label = new QLabel(tr("&Checkpoint"), source);
    label->setBuddy(m_path);
    m_fromStudy = new QToolButton(source);
    m_fromStudy->setText(tr("From the study"));
    m_fromStudy->setToolTip(tr("Checkpoints and drafts of the open study"));
    m_fromStudy->setAccessibleName(m_fromStudy->text());
    m_fromStudy->setPopupMode(QToolButton::InstantPopup);
    m_fromStudy->setMenu(new QMenu(m_fromStudy));
    m_summary = new QLabel(source);
    m_summary->setWordWrap(true);
    m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_warnings = new QLabel(source);
    m_warnings->setWordWrap(true);
    m_warnings->setTextFormat(Qt::PlainText);
    m_warnings->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_warnings->setAccessibleName(tr("Warnings"));
    connect(m_path, &PathField::changed, this, [this] {
        if (m_path->path() != m_model && looksLikeModel(m_path->path()))
            openModel(m_path->path());
    });
    connect(m_path, &PathField::chosen, this, [this] { openModel(m_path->path()); });
    connect(m_path->edit(), &QLineEdit::returnPressed, this, [this] { openModel(m_path->path()); });
    auto* line = new QHBoxLayout;
    line->addWidget(label);
    line->addWidget(m_path, 1);
    line->addWidget(m_fromStudy);
    auto* column = new QVBoxLayout(source);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(line);
    column->addWidget(m_summary);
    column->addWidget(m_warnings);
    return source;
}

QWidget* CheckpointPage::buildConfig()
{
    m_configView = new QTableView(this);
    m_configView->setModel(m_config);
    m_configView->setAccessibleName(tr("Configuration"));
    m_configView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_configView->setAlternatingRowColors(true);
    m_configView->setShowGrid(false);
    m_configView->setWordWrap(false);
    m_configView->setTabKeyNavigation(false);
    m_configView->verticalHeader()->hide();
    m_configView->verticalHeader()->setDefaultSectionSize(m_configView->fontMetrics().height() + 4);
    m_configView->horizontalHeader()->setHighlightSections(false);
    m_configView->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    m_configView->horizontalHeader()->setStretchLastSection(true);
    m_configView->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* copy = new QAction(tr("Copy all"), m_configView);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    connect(copy, &QAction::triggered, this,
            [this] { QGuiApplication::clipboard()->setText(m_config->asText()); });
    m_configView->addAction(copy);
    return m_configView;
}

void CheckpointPage::refresh()
{
    QMenu* menu = m_fromStudy->menu();
    menu->clear();
    const auto add = [&](const std::string& id, const std::string& path) {
        if (path.empty())
            return;
        QAction* action = menu->addAction(text(id));
        action->setToolTip(text(path));
        connect(action, &QAction::triggered, this, [this, path] { openModel(text(path)); });
    };
    for (const CheckpointRecord& checkpoint : m_document.study().checkpoints)
        add(checkpoint.id, checkpoint.path);
    if (!menu->isEmpty())
        menu->addSeparator();
    for (const RunRecord& run : m_document.study().runs)
        add(run.id, run.draftPath);
    m_fromStudy->setEnabled(!menu->isEmpty());
}

void CheckpointPage::openModel(const QString& path)
{
    if (path.isEmpty())
        return;
    m_model = path; // the path field's own change does not start it again
    m_path->setPath(path);
    if (m_state->isEmpty())
        showNothing(tr("Reading %1…").arg(QFileInfo(path).fileName()), {});
    m_task.start([inspect = m_inspect, path] { return inspect(filePath(path)); },
                 [this, path](const Result<InspectReport>& report) { take(path, report); });
}

void CheckpointPage::take(const QString& path, const Result<InspectReport>& report)
{
    if (report) {
        showReport(*report);
        m_tensors->setModel(filePath(path), report->tensors);
        return;
    }
    m_model.clear();
    m_tensors->clear();
    m_planner->setModel({});
    const QString reason = text(report.error().text());
    showNothing(tr("%1 could not be read").arg(QFileInfo(path).fileName()), reason);
    emit failed(tr("%1 could not be read: %2").arg(QFileInfo(path).fileName(), reason));
}

void CheckpointPage::showReport(const InspectReport& report)
{
    m_summary->setText(summaryText(report));
    QStringList lines;
    for (const std::string& warning : report.warnings)
        lines << tr("Warning: %1").arg(text(warning));
    m_warnings->setText(lines.join(QLatin1Char('\n')));
    std::vector<Detail> details;
    for (const ConfigProperty& property : report.properties)
        details.push_back({text(property.name), text(valueText(property))});
    m_config->setDetails(std::move(details));
    m_planner->setModel(report.config, report.cacheDtype);
    m_summary->show();
    m_warnings->setVisible(!lines.isEmpty());
    m_state->setEmpty(false);
}

void CheckpointPage::showNothing(const QString& title, const QString& hint)
{
    m_summary->hide();
    m_warnings->hide();
    m_state->setText(title, hint);
    m_state->setEmpty(true);
}

void CheckpointPage::dragEnterEvent(QDragEnterEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    const QString path = urls.size() == 1 ? urls.first().toLocalFile() : QString();
    if (QFileInfo(path).isDir() || looksLikeModel(path))
        event->acceptProposedAction(); // anything else is for the window
}

void CheckpointPage::dropEvent(QDropEvent* event)
{
    event->acceptProposedAction();
    openModel(event->mimeData()->urls().value(0).toLocalFile());
}

} // namespace mla::ui
