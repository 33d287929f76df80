// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session.h"

#include <QCryptographicHash>
#include <QFileInfo>
#include <QHeaderView>
#include <QSettings>
#include <QSplitter>

#include "app/workbench/dock_area.h"
#include "widgets/models/selection_model.h"
#include "widgets/models/study_document.h"
#include "widgets/plots/plot_view.h"

namespace mla::ui
{
namespace
{

constexpr QSize defaultSize{1360, 880};
constexpr int mostStudies = 20;
const auto geometryKey = QStringLiteral("layout/geometry");
const auto splittersKey = QStringLiteral("layout/splitters1/"); // the number: of their meaning
const auto columnsKey = QStringLiteral("layout/columns1/");
const auto lastStudyKey = QStringLiteral("session/study");
const auto orderKey = QStringLiteral("studies/latest");

/// Paths hold slashes, which settings take for groups.
QString studyKey(const QString& path)
{
    const QByteArray hash = QCryptographicHash::hash(path.toUtf8(), QCryptographicHash::Sha1);
    return QStringLiteral("studies/") + QString::fromLatin1(hash.toHex());
}

/// Calls `visit(key, part)` for every part of a kind, which is known by its page and its number
/// there: pages build their parts in the same order each time.
template <typename Part, typename Visit>
void eachPart(const DockArea& docks, const Visit& visit)
{
    for (const QString& id : docks.pageIds()) {
        int number = 0;
        for (Part* part : docks.page(id)->findChildren<Part*>())
            visit(QStringLiteral("%1-%2").arg(id).arg(number++), part);
    }
}

template <typename Visit>
void eachColumns(const DockArea& docks, const Visit& visit)
{
    eachPart<QHeaderView>(docks, [&](const QString& key, QHeaderView* header) {
        if (header->orientation() == Qt::Horizontal)
            visit(key, header);
    });
}

/// Widths, order and sorting. Which columns show is the page's affair: it follows the contents.
void applyColumns(QHeaderView& header, const QByteArray& state)
{
    std::vector<bool> hidden;
    for (int column = 0; column < header.count(); ++column)
        hidden.push_back(header.isSectionHidden(column));
    header.restoreState(state);
    for (int column = 0; column < header.count() && column < int(hidden.size()); ++column)
        header.setSectionHidden(column, hidden[std::size_t(column)]);
}

/// The studies that are kept, `key` the latest; those beyond are forgotten.
void touch(QSettings& settings, const QString& key)
{
    QStringList order = settings.value(orderKey).toStringList();
    order.removeAll(key);
    order.prepend(key);
    while (order.size() > mostStudies)
        settings.remove(order.takeLast());
    settings.setValue(orderKey, order);
}

QVariantList zoomOf(const PlotView& plot)
{
    const std::optional<PlotZoom> zoom = plot.zoom();
    if (!zoom)
        return {};
    return {QString::fromStdString(plot.figure().id), zoom->left, zoom->right, zoom->bottom,
            zoom->top};
}

/// A zoom belongs to a figure; on another one it would show anything.
void applyZoom(PlotView& plot, const QVariantList& zoom)
{
    if (zoom.size() == 5 && zoom[0].toString() == QString::fromStdString(plot.figure().id))
        plot.setZoom(
            {zoom[1].toDouble(), zoom[2].toDouble(), zoom[3].toDouble(), zoom[4].toDouble()});
}

} // namespace

Session::Session(QWidget& window, DockArea& docks, StudyDocument& document,
                 SelectionModel& selection)
    : QObject(&window), m_window(window), m_docks(docks), m_document(document),
      m_selection(selection)
{
    eachPart<QSplitter>(m_docks, [this](const QString&, QSplitter* splitter) {
        m_splitters[splitter] = splitter->saveState();
    });
    eachColumns(m_docks, [this](const QString&, QHeaderView* header) {
        m_columns[header] = header->saveState();
    });
    connect(&document, &StudyDocument::pathChanged, this, &Session::followStudy);
    connect(&document, &StudyDocument::opened, this, &Session::showStudy);
}

void Session::restoreLayout()
{
    const QSettings settings;
    m_window.resize(defaultSize);
    m_window.restoreGeometry(settings.value(geometryKey).toByteArray());
    m_docks.restoreLayout();
    eachPart<QSplitter>(m_docks, [&](const QString& key, QSplitter* splitter) {
        splitter->restoreState(settings.value(splittersKey + key).toByteArray());
    });
    restoreColumns();
}

void Session::restoreColumns()
{
    const QSettings settings;
    eachColumns(m_docks, [&](const QString& key, QHeaderView* header) {
        const QVariantList saved = settings.value(columnsKey + key).toList();
        if (saved.size() == 2 && saved[0].toInt() == header->count())
            applyColumns(*header, saved[1].toByteArray());
    });
}

void Session::resetLayout()
{
    if (!m_window.isMaximized() && !m_window.isFullScreen())
        m_window.resize(defaultSize);
    m_docks.resetLayout();
    for (const auto& [splitter, state] : m_splitters)
        splitter->restoreState(state);
    for (const auto& [header, state] : m_columns)
        applyColumns(*header, state);
    eachPart<PlotView>(m_docks, [](const QString&, PlotView* plot) { plot->resetView(); });
}

void Session::save()
{
    QSettings settings;
    settings.setValue(geometryKey, m_window.saveGeometry());
    m_docks.saveLayout();
    eachPart<QSplitter>(m_docks, [&](const QString& key, const QSplitter* splitter) {
        settings.setValue(splittersKey + key, splitter->saveState());
    });
    eachColumns(m_docks, [&](const QString& key, const QHeaderView* header) {
        settings.setValue(columnsKey + key, QVariantList{header->count(), header->saveState()});
    });
    saveStudy();
    // A name that no job has written a study to yet is none to come back to.
    const bool there = m_document.isLoaded() || QFileInfo::exists(m_path);
    settings.setValue(lastStudyKey, there ? m_path : QString());
}

QString Session::lastStudy()
{
    return QSettings().value(lastStudyKey).toString();
}

/// The pages still show the study before: its views are kept before they go.
void Session::followStudy(const QString& path)
{
    saveStudy();
    m_path = path;
    m_restoring = m_document.isLoaded(); // else a job is about to write it, or none is open
}

void Session::showStudy()
{
    if (!m_columnsDone) {
        // Tables fit their columns to their first contents; only now is that the default.
        m_columnsDone = true;
        for (auto& [header, state] : m_columns)
            state = header->saveState();
        restoreColumns();
    }
    if (m_restoring)
        restoreStudy();
    m_restoring = false;
}

void Session::saveStudy() const
{
    if (m_path.isEmpty())
        return;
    QSettings settings;
    const QString key = studyKey(m_path);
    settings.remove(key);
    settings.setValue(key + QStringLiteral("/path"), m_path);
    settings.setValue(key + QStringLiteral("/run"), m_selection.run());
    if (const auto layer = m_selection.layer())
        settings.setValue(key + QStringLiteral("/layer"), *layer);
    settings.setValue(key + QStringLiteral("/page"), m_docks.frontPage());
    eachPart<PlotView>(m_docks, [&](const QString& part, const PlotView* plot) {
        if (const QVariantList zoom = zoomOf(*plot); !zoom.isEmpty())
            settings.setValue(key + QStringLiteral("/zoom-") + part, zoom);
    });
    touch(settings, key);
}

void Session::restoreStudy() const
{
    const QSettings settings;
    const QString key = studyKey(m_path);
    if (!settings.contains(key + QStringLiteral("/path")))
        return;
    // The study may have been written anew since: what is gone from it is not selected.
    const QString run = settings.value(key + QStringLiteral("/run")).toString();
    if (m_document.run(run))
        m_selection.setRun(run);
    const QVariant layer = settings.value(key + QStringLiteral("/layer"));
    if (const RunRecord* shown = m_document.run(m_selection.run()); shown && layer.isValid())
        for (const LayerRecord& each : shown->layers)
            if (each.layer.value == layer.toInt())
                m_selection.setLayer(layer.toInt());
    m_docks.raisePage(m_docks.page(settings.value(key + QStringLiteral("/page")).toString()));
    eachPart<PlotView>(m_docks, [&](const QString& part, PlotView* plot) {
        applyZoom(*plot, settings.value(key + QStringLiteral("/zoom-") + part).toList());
    });
}

} // namespace mla::ui
