// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/cluster_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/row_table.h"

namespace mla::ui
{

namespace
{
constexpr int pollMs = 15000; // squeue asks the whole cluster's controller
}

ClusterView::ClusterView(ClusterServices services, QWidget* parent)
    : QWidget(parent), m_services(std::move(services)), m_model(new ClusterJobModel(this)),
      m_view(new QTableView(this)), m_trouble(new QLabel(this))
{
    m_view->setModel(m_model);
    m_view->setAccessibleName(tr("Jobs on the cluster"));
    setUpRowTable(*m_view);
    m_view->horizontalHeader()->setSectionResizeMode(ClusterJobModel::Name, QHeaderView::Stretch);
    m_view->horizontalHeader()->setSectionResizeMode(ClusterJobModel::Where, QHeaderView::Stretch);
    m_trouble->setWordWrap(true);
    m_trouble->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_trouble->hide();
    m_cancel = new QPushButton(tr("&Cancel on the cluster"), this);
    auto* again = new QPushButton(tr("&Look again"), this);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_cancel);
    buttons->addStretch(1);
    buttons->addWidget(again);
    m_state = new EmptyState(m_view, this);
    m_state->setText(tr("No jobs of yours on the cluster"),
                     tr("“mla-draft grid GRID.json --slurm” submits the rows of a grid."));
    m_state->setEmpty(true);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_trouble);
    layout->addWidget(m_state, 1);
    layout->addLayout(buttons);

    m_timer.setInterval(pollMs);
    connect(&m_timer, &QTimer::timeout, this, &ClusterView::refresh);
    connect(again, &QPushButton::clicked, this, &ClusterView::refresh);
    connect(m_cancel, &QPushButton::clicked, this, &ClusterView::cancelCurrent);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &ClusterView::showCurrent);
    connect(m_model, &QAbstractItemModel::rowsRemoved, this, &ClusterView::showCurrent);
    showCurrent();
}

void ClusterView::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    refresh();
    m_timer.start();
}

void ClusterView::hideEvent(QHideEvent* event)
{
    m_timer.stop();
    QWidget::hideEvent(event);
}

void ClusterView::refresh()
{
    if (!m_listing.busy()) // a controller that is slow to answer is not asked again meanwhile
        m_listing.start([list = m_services.list] { return list(); },
                        [this](const Result<std::vector<ClusterJob>>& jobs) { showJobs(jobs); });
}

/// After an error the last list stays: it is old, and the line above says so.
void ClusterView::showJobs(const Result<std::vector<ClusterJob>>& jobs)
{
    m_trouble->setVisible(!jobs);
    if (!jobs) {
        m_trouble->setText(text(jobs.error().text()));
        return;
    }
    m_model->setJobs(*jobs);
    m_state->setEmpty(jobs->empty());
}

void ClusterView::cancelCurrent()
{
    const std::string id = m_model->idAt(m_view->currentIndex().row()).toStdString();
    if (id.empty())
        return;
    m_cancelling.start([cancel = m_services.cancel, id] { return cancel(id); },
                       [this](const Status& done) {
                           if (done) {
                               refresh();
                               return;
                           }
                           m_trouble->setText(text(done.error().text()));
                           m_trouble->show();
                       });
}

void ClusterView::showCurrent()
{
    m_cancel->setEnabled(!m_model->idAt(m_view->currentIndex().row()).isEmpty());
}

} // namespace mla::ui
