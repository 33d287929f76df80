// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/fidelity_page.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/dialogs/path_field.h"
#include "widgets/pages/attention_view.h"

namespace mla::ui
{

namespace
{

const CheckpointRecord* originalOf(const StudyData& study, const RunRecord& run)
{
    const auto found = std::ranges::find(study.checkpoints, run.checkpoint, &CheckpointRecord::id);
    return found == study.checkpoints.end() ? nullptr : &*found;
}

/// A number of config.json; 0 if it is not there.
int configNumber(const CheckpointRecord* checkpoint, const char* key)
{
    if (!checkpoint)
        return 0;
    const QByteArray json = QByteArray::fromStdString(checkpoint->configJson);
    return QJsonDocument::fromJson(json).object().value(QLatin1String(key)).toInt();
}

QSplitter* splitter(Qt::Orientation orientation, QWidget* first, QWidget* second, QWidget* parent)
{
    auto* both = new QSplitter(orientation, parent);
    both->addWidget(first);
    both->addWidget(second);
    both->setChildrenCollapsible(false);
    both->setSizes({1000, 1000});
    return both;
}

QLabel* caption(const QString& name, QWidget* parent)
{
    auto* label = new QLabel(parent);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setAccessibleName(name);
    return label;
}

/// A row of tools above `content`.
QWidget* below(const QList<QWidget*>& tools, QWidget* content, QWidget* parent)
{
    auto* whole = new QWidget(parent);
    auto* line = new QHBoxLayout;
    for (QWidget* tool : tools)
        line->addWidget(tool, qobject_cast<QPushButton*>(tool) ? 0 : 1);
    auto* layout = new QVBoxLayout(whole);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(content, 1);
    return whole;
}

} // namespace

FidelityPage::FidelityPage(StudyDocument& document, SelectionModel& selection, StudyJobs& jobs,
                           FidelityMeters meters, QWidget* parent)
    : Page(document, selection, parent), m_jobs(jobs), m_meters(std::move(meters)),
      m_title(new QLabel(this))
{
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* tabs = new QTabWidget(this);
    tabs->setDocumentMode(true);
    tabs->setAccessibleName(tr("Views of fidelity"));
    tabs->addTab(buildSources(), tr("Error sources"));
    tabs->addTab(buildPositions(), tr("Positions"));
    tabs->addTab(buildMaps(), tr("Attention maps"));
    m_state = new EmptyState(below({m_title}, tabs, this), this);
    m_state->setText(tr("No draft to look at"),
                     tr("Open a study with File › Open study, or convert a model with File › New "
                        "run."));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    connect(&selection, &SelectionModel::layerChanged, this, &FidelityPage::showLayer);
    connect(&jobs, &StudyJobs::ended, this, [this](JobId job) {
        if (m_running.erase(job) > 0)
            followJobs();
    });
    FidelityPage::refresh();
}

QPushButton* FidelityPage::addMeter(const QString& title, const std::function<void()>& measure)
{
    auto* button = new QPushButton(title, this);
    connect(button, &QPushButton::clicked, this, measure);
    return button;
}

QWidget* FidelityPage::buildSources()
{
    m_errors = addPlot(tr("Functional error per layer"));
    m_sources = addPlot(tr("Sources of the functional error"));
    m_table = addLayerTable(errorSourceColumns(), QStringLiteral("error-sources"));
    m_sourcesText = caption(tr("Error sources, in words"), this);
    m_measureSources = addMeter(tr("&Measure error sources"), [this] { measureSources(); });
    m_measureSources->setToolTip(tr("Repeats the conversion of this draft, layer by layer"));
    linkCursors({m_errors, m_sources});
    return below(
        {m_sourcesText, m_measureSources},
        splitter(Qt::Vertical, splitter(Qt::Horizontal, m_errors, m_sources, this), m_table, this),
        this);
}

QWidget* FidelityPage::buildPositions()
{
    m_kl = addPlot(tr("KL by position"));
    m_perplexity = addPlot(tr("Perplexity by position"));
    m_positionsText = caption(tr("Positions, in words"), this);
    m_text = new PathField(PathField::Kind::OpenFiles, tr("Text to score"), this);
    m_text->setPlaceholder(tr("Text file; empty: the draft's held-out sequences"));
    m_text->edit()->setAccessibleName(tr("Text to score"));
    m_measurePositions = addMeter(tr("Measure &positions"), [this] { measurePositions(); });
    linkCursors({m_kl, m_perplexity});
    auto* plots =
        below({m_positionsText}, splitter(Qt::Horizontal, m_kl, m_perplexity, this), this);
    return below({m_text, m_measurePositions}, plots, this);
}

QWidget* FidelityPage::buildMaps()
{
    const std::array<PlotView*, 3> plots = {addPlot(tr("Attention of the original")),
                                            addPlot(tr("Attention of the draft")),
                                            addPlot(tr("Difference of attention"))};
    linkCursors({plots.begin(), plots.end()});
    m_attention = new AttentionView(plots, this);
    connect(m_attention, &AttentionView::requested, this, &FidelityPage::measureMap);
    connect(m_attention, &AttentionView::layerChosen, this,
            [this](int layer) { m_selection.setLayer(layer); });
    return m_attention;
}

void FidelityPage::refresh()
{
    const RunRecord* run = m_document.run(m_selection.run());
    m_state->setEmpty(m_document.study().runs.empty());
    m_title->setText(run ? text(run->id) : tr("No run selected"));
    showSources(run);
    showPositions(run);
    const CheckpointRecord* original = run ? originalOf(m_document.study(), *run) : nullptr;
    m_attention->setRun(run, configNumber(original, "num_hidden_layers"),
                        configNumber(original, "num_attention_heads"));
    showLayer();
    followJobs();
}

/// Why there is nothing, and what to do; `next` if it can be measured.
QString FidelityPage::hint(const RunRecord* run, const QString& next) const
{
    if (!run)
        return tr("Select a run in the Study page.");
    return request() ? next
                     : tr("The study does not say where this draft and its original are: nothing "
                          "can be measured.");
}

void FidelityPage::showSources(const RunRecord* run)
{
    const Figure sources = run ? errorSources(*run) : Figure();
    m_table->setLayers(run ? run->layers : std::vector<LayerRecord>());
    showFigure(*m_errors, run ? layerErrors(*run) : Figure(),
               run ? tr("This run has no functional errors.") : hint(run, {}));
    showFigure(*m_sources, sources,
               hint(run, tr("Not measured yet: press Measure error sources.")));
    m_sourcesText->setText(text(sources.caption));
}

void FidelityPage::showPositions(const RunRecord* run)
{
    const QString next = hint(run, tr("Not measured yet: press Measure positions. A long text "
                                      "shows what happens far from its beginning."));
    showFigure(*m_kl, run ? positionKl(*run) : Figure(), next);
    showFigure(*m_perplexity, run ? positionPerplexity(*run) : Figure(), next);
    m_positionsText->setText(run && run->positions
                                 ? tr("Measured on: %1").arg(text(run->positions->source))
                                 : QString());
}

void FidelityPage::showLayer()
{
    for (PlotView* plot : {m_errors, m_sources})
        plot->setSelectedLayer(m_selection.layer());
    m_table->setSelectedLayer(m_selection.layer());
    m_attention->setLayer(m_selection.layer());
}

/// A measurement in the queue is not asked for twice.
void FidelityPage::followJobs()
{
    const bool possible = request().has_value();
    const auto idle = [&](Kind kind) {
        return possible && std::ranges::none_of(m_running, [kind](const auto& running) {
                   return running.second == kind;
               });
    };
    m_measureSources->setEnabled(idle(Kind::Sources));
    m_measurePositions->setEnabled(idle(Kind::Positions));
    m_attention->setReady(idle(Kind::Map));
}

std::optional<DiagnosticsRequest> FidelityPage::request() const
{
    const RunRecord* run = m_document.run(m_selection.run());
    const CheckpointRecord* original = run ? originalOf(m_document.study(), *run) : nullptr;
    if (!original || original->path.empty() || run->draftPath.empty())
        return std::nullopt;
    DiagnosticsRequest request;
    request.draft = run->draftPath;
    request.original = original->path;
    request.study = filePath(m_document.path());
    return request;
}

void FidelityPage::start(Kind kind, const QString& title, std::function<Status(JobContext&)> work)
{
    JobTask task;
    task.title = title;
    task.work = std::move(work);
    task.study = filePath(m_document.path());
    task.folder = task.study.parent_path();
    m_running[m_jobs.start(task)] = kind;
    followJobs();
}

void FidelityPage::measureSources()
{
    start(Kind::Sources, tr("Error sources of %1").arg(m_selection.run()),
          [measure = m_meters.sources, request = *request()](JobContext& job) -> Status {
              MLA_CHECK(measure(job, request));
              return {};
          });
}

void FidelityPage::measurePositions()
{
    PositionRequest wanted{*request(), std::nullopt};
    if (!m_text->path().isEmpty())
        wanted.text = filePath(m_text->path());
    start(Kind::Positions, tr("Positions of %1").arg(m_selection.run()),
          [measure = m_meters.positions, wanted](JobContext& job) -> Status {
              MLA_CHECK(measure(job, wanted));
              return {};
          });
}

void FidelityPage::measureMap(const MapChoice& choice)
{
    AttentionMapRequest wanted{*request(), LayerIndex(choice.layer), HeadIndex(choice.head),
                               choice.prompt.toStdString()};
    start(Kind::Map,
          tr("Attention map of %1, layer %2, head %3")
              .arg(m_selection.run())
              .arg(choice.layer)
              .arg(choice.head),
          [measure = m_meters.map, wanted = std::move(wanted)](JobContext& job) -> Status {
              MLA_CHECK(measure(job, wanted));
              return {};
          });
}

} // namespace mla::ui
