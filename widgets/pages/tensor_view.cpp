// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/tensor_view.h"

#include <mutex>
#include <set>

#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTreeView>
#include <QVBoxLayout>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/table_export.h"
#include "widgets/models/model_table.h"
#include "widgets/models/tensor_tree_model.h"

namespace mla::ui
{

struct TensorView::Inbox {
    void add(const TensorStatistics& one)
    {
        const std::scoped_lock lock(mutex);
        arrived.push_back(one);
    }
    std::vector<TensorStatistics> take()
    {
        const std::scoped_lock lock(mutex);
        return std::exchange(arrived, {});
    }
    std::mutex mutex;
    std::vector<TensorStatistics> arrived;
};

TensorView::TensorView(TensorMeter measure, QWidget* parent)
    : QWidget(parent), m_measure(std::move(measure)), m_model(new TensorTreeModel(this)),
      m_shown(new TensorFilterProxy(this)), m_tree(new QTreeView(this))
{
    m_shown->setSourceModel(m_model);
    m_model->setDark(isDark(palette()));
    buildTree();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(buildFilterLine());
    layout->addWidget(m_tree, 1);
    layout->addLayout(buildMeasureLine());
    connect(&m_runner, &JobRunner::eventsArrived, this, &TensorView::showProgress);
    connect(&m_runner, &JobRunner::jobEnded, this, &TensorView::endJob);
    showStatisticsColumns(false);
    showState();
}

TensorView::~TensorView() = default;

void TensorView::buildTree()
{
    m_tree->setModel(m_shown);
    m_tree->setAccessibleName(tr("Tensors"));
    m_tree->setUniformRowHeights(true);
    m_tree->setAlternatingRowColors(true);
    m_tree->setTextElideMode(Qt::ElideMiddle);
    m_tree->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_tree->setAllColumnsShowFocus(true);
    m_tree->header()->setStretchLastSection(true);
    m_tree->header()->setSortIndicatorClearable(true); // a third click: the file's own order
    m_tree->header()->setSortIndicator(-1, Qt::AscendingOrder);
    m_tree->setSortingEnabled(true);
    m_tree->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* copy = new QAction(tr("Copy names"), m_tree);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    connect(copy, &QAction::triggered, this, [this] {
        QStringList names;
        for (const std::string& name : chosen())
            names << text(name);
        QGuiApplication::clipboard()->setText(names.join(QLatin1Char('\n')));
    });
    auto* measure = new QAction(tr("Compute statistics"), m_tree);
    connect(measure, &QAction::triggered, this, &TensorView::measureSelected);
    m_tree->addActions({measure, copy});
    connect(m_tree->selectionModel(), &QItemSelectionModel::selectionChanged, this,
            &TensorView::showState);
}

QLayout* TensorView::buildFilterLine()
{
    m_filter = new QLineEdit(this);
    m_filter->setPlaceholderText(tr("Filter: words of name, type, shape or file"));
    m_filter->setAccessibleName(tr("Filter tensors"));
    m_filter->setClearButtonEnabled(true);
    connect(m_filter, &QLineEdit::textChanged, this, &TensorView::filter);
    auto* grouped = new QCheckBox(tr("By &layer"), this);
    grouped->setToolTip(tr("Group tensors by layer and module; else a list that sorts as a whole"));
    grouped->setChecked(true);
    connect(grouped, &QCheckBox::toggled, this, &TensorView::setGrouped);
    auto* exports = new TableExportButton(
        [this] {
            return tableFromModel(*m_shown, TensorTreeModel::valueRole, QStringLiteral("tensors"),
                                  tr("Tensors"));
        },
        this);
    connect(exports, &TableExportButton::exportFailed, this, &TensorView::failed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_filter, 1);
    line->addWidget(grouped);
    line->addWidget(exports);
    return line;
}

QLayout* TensorView::buildMeasureLine()
{
    m_state = new QLabel(this);
    m_start = new QPushButton(tr("Compute &statistics"), this);
    m_start->setToolTip(tr("Reads the selected tensors, or all that are shown: range, mean, "
                           "deviation, zeros, NaN and infinities, norms of rows"));
    m_cancel = new QPushButton(tr("Stop"), this);
    m_cancel->setAccessibleName(tr("Stop computing statistics"));
    m_progress = new QProgressBar(this);
    m_progress->setAccessibleName(tr("Tensors measured"));
    m_progress->setMaximumWidth(180);
    connect(m_start, &QPushButton::clicked, this, &TensorView::measureSelected);
    connect(m_cancel, &QPushButton::clicked, this, &TensorView::cancel);
    auto* line = new QHBoxLayout;
    line->addWidget(m_state, 1);
    line->addWidget(m_progress);
    line->addWidget(m_cancel);
    line->addWidget(m_start);
    return line;
}

void TensorView::setModel(const std::filesystem::path& model,
                          const std::vector<TensorSummary>& tensors)
{
    m_job = 0;
    m_inbox.reset();
    m_runner.cancelAll();
    m_path = model;
    m_model->setTensors(tensors);
    showStatisticsColumns(false);
    for (const int column :
         {TensorTreeModel::Stored, TensorTreeModel::Shape, TensorTreeModel::Size})
        m_tree->resizeColumnToContents(column);
    m_tree->setColumnWidth(TensorTreeModel::Name, m_tree->fontMetrics().averageCharWidth() * 34);
    showState();
}

void TensorView::filter(const QString& words)
{
    m_shown->setWords(words);
    if (words.trimmed().isEmpty())
        m_tree->collapseAll();
    else
        m_tree->expandAll(); // what was found shows
    showState();
}

void TensorView::setGrouped(bool grouped)
{
    m_model->setGrouped(grouped);
    m_tree->setRootIsDecorated(grouped);
    filter(m_filter->text());
}

/// Empty columns would only take room.
void TensorView::showStatisticsColumns(bool shown)
{
    for (int column = TensorTreeModel::Minimum; column <= TensorTreeModel::RowNormMaximum; ++column)
        m_tree->setColumnHidden(column, !shown);
}

std::vector<std::string> TensorView::chosen() const
{
    return m_shown->tensorsBelow(m_tree->selectionModel()->selectedRows());
}

void TensorView::measureSelected()
{
    const std::vector<std::string> names = chosen();
    if (names.empty() || measuring() || m_path.empty())
        return;
    m_inbox = std::make_shared<Inbox>();
    m_job =
        m_runner.enqueue({tr("Statistics"), [measure = m_measure, path = m_path, names,
                                             inbox = m_inbox](JobContext& job) {
                              return measure(job, path, names,
                                             [&](const TensorStatistics& one) { inbox->add(one); });
                          }});
    m_progress->setRange(0, static_cast<int>(names.size()));
    m_progress->setValue(0);
    showState();
}

void TensorView::cancel()
{
    m_runner.cancel(m_job);
    m_cancel->setEnabled(false);
}

void TensorView::takeResults()
{
    const std::vector<TensorStatistics> arrived =
        m_inbox ? m_inbox->take() : std::vector<TensorStatistics>();
    if (arrived.empty())
        return;
    const bool first = m_tree->isColumnHidden(TensorTreeModel::Minimum);
    showStatisticsColumns(true);
    m_model->addStatistics(arrived);
    if (!first)
        return;
    for (int column = TensorTreeModel::Minimum; column <= TensorTreeModel::RowNormMaximum; ++column)
        m_tree->setColumnWidth(column, m_tree->fontMetrics().averageCharWidth() * 12);
}

void TensorView::showProgress(JobId job, const std::vector<JobEvent>& events)
{
    if (job != m_job)
        return; // of a model that is no longer shown
    takeResults();
    for (const JobEvent& event : events)
        if (const auto* progress = std::get_if<StageProgress>(&event))
            m_progress->setValue(static_cast<int>(progress->done));
}

void TensorView::endJob(JobId job, const JobEnd& end)
{
    if (job == m_job) {
        takeResults();
        m_job = 0;
        if (end.error)
            emit failed(tr("Statistics could not be computed: %1").arg(text(end.error->text())));
    }
    showState();
}

void TensorView::showState()
{
    const bool busy = measuring();
    const std::vector<std::string> names = chosen();
    const std::set<std::string> counted(names.begin(), names.end());
    qint64 bytes = 0;
    for (const TensorSummary& tensor : m_model->tensors())
        if (counted.contains(tensor.name))
            bytes += tensor.bytes;
    const bool some = m_tree->selectionModel()->hasSelection();
    const QString what = some ? tr("Selected tensors: %1, %2") : tr("Tensors: %1, %2");
    m_state->setText(what.arg(countText(qint64(names.size())), bytesText(bytes)));
    m_start->setEnabled(!busy && !names.empty());
    m_cancel->setEnabled(busy);
    m_cancel->setVisible(busy);
    m_progress->setVisible(busy);
}

void TensorView::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_model->setDark(isDark(palette()));
}

} // namespace mla::ui
