// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/report_page.h"

#include <algorithm>

#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QFileInfo>
#include <QGuiApplication>
#include <QLabel>
#include <QListView>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QSplitter>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/pages/report_options_form.h"
#include "widgets/pages/sheet_preview.h"

namespace mla::ui
{

namespace
{
constexpr double fitted = 0; // of the zoom box
constexpr int mostColumns = 6;
} // namespace

ReportPage::ReportPage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_list(new ReportListModel(this)),
      m_view(new QListView(this)), m_options(new ReportOptionsForm(this)),
      m_preview(new SheetPreview(this))
{
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(buildList());
    splitter->addWidget(buildPreview());
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({330, 800});
    splitter->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    m_state->setText(tr("No figures yet"),
                     tr("A report is made of a study: open one, or start a new run."));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    connect(m_options, &ReportOptionsForm::changed, this, &ReportPage::showSelected);
    connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this,
            &ReportPage::showSelected);
    ReportPage::refresh();
}

QWidget* ReportPage::buildList()
{
    m_view->setModel(m_list);
    m_view->setAccessibleName(tr("Figures and sheets of the report"));
    m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    // Titles begin alike: what tells them apart stands at their ends.
    m_view->setTextElideMode(Qt::ElideMiddle);
    m_view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_view->setUniformItemSizes(true);
    auto* part = new QWidget(this);
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_view, 1);
    column->addWidget(buildButtons(part));
    column->addWidget(m_options);
    m_export = new QPushButton(tr("E&xport report…"), part);
    m_export->setToolTip(tr("Writes the checked figures and sheets, their numbers, the tables of "
                            "the study, and a manifest"));
    connect(m_export, &QPushButton::clicked, this, &ReportPage::exportRequested);
    column->addWidget(m_export);
    return part;
}

QWidget* ReportPage::buildButtons(QWidget* parent)
{
    auto* part = new QWidget(parent);
    auto* grid = new QGridLayout(part);
    grid->setContentsMargins(0, 0, 0, 0);
    const auto button = [&](const QString& label, const QString& tip, auto&& action) {
        auto* made = new QPushButton(label, part);
        made->setToolTip(tip);
        connect(made, &QPushButton::clicked, this, action);
        return made;
    };
    m_columns = new QSpinBox(part);
    m_columns->setRange(1, mostColumns);
    m_columns->setValue(2);
    m_columns->setPrefix(tr("columns: "));
    m_columns->setAccessibleName(tr("Panels beside each other in a new sheet"));
    connect(m_columns, &QSpinBox::valueChanged, this, &ReportPage::showSelected);
    m_compose = button(tr("C&ompose sheet"),
                       tr("Makes one picture of the selected figures, marked (a), (b), …"),
                       [this] { compose(); });
    m_remove = button(tr("&Remove sheet"), tr("Takes the selected sheet out of the report"),
                      [this] { m_list->removeSheet(m_view->currentIndex().row()); });
    grid->addWidget(m_compose, 0, 0);
    grid->addWidget(m_columns, 0, 1);
    grid->addWidget(m_remove, 0, 2);
    grid->addWidget(button(tr("Check &all"), tr("The report holds every figure"),
                           [this] { m_list->setAllChecked(true); }),
                    1, 0);
    grid->addWidget(button(tr("Check &none"), tr("Start from an empty report"),
                           [this] { m_list->setAllChecked(false); }),
                    1, 1, 1, 2);
    return part;
}

QWidget* ReportPage::buildPreview()
{
    auto* part = new QWidget(this);
    m_scroll = new QScrollArea(part);
    m_scroll->setWidget(m_preview);
    m_scroll->setAlignment(Qt::AlignCenter);
    m_scroll->setAccessibleName(tr("Preview"));
    m_scroll->viewport()->installEventFilter(this);
    m_zoom = new QComboBox(part);
    m_zoom->setAccessibleName(tr("Zoom of the preview"));
    m_zoom->addItem(tr("Fit"), fitted);
    for (const int percent : {50, 100, 150, 200, 400})
        m_zoom->addItem(tr("%1 %").arg(percent), percent / 100.0);
    m_zoom->setCurrentIndex(m_zoom->findData(1.0));
    connect(m_zoom, &QComboBox::currentIndexChanged, this, &ReportPage::fitZoom);
    m_size = new QLabel(part);
    m_caption = new QLabel(part);
    m_caption->setWordWrap(true);
    m_caption->setTextFormat(Qt::PlainText);
    m_caption->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_caption->setAccessibleName(tr("Caption"));
    m_copy = new QPushButton(tr("Copy ca&ption"), part);
    connect(m_copy, &QPushButton::clicked, this,
            [this] { QGuiApplication::clipboard()->setText(m_caption->text()); });
    auto* line = new QHBoxLayout;
    line->addWidget(m_size, 1);
    line->addWidget(new QLabel(tr("Zoom"), part));
    line->addWidget(m_zoom);
    auto* words = new QHBoxLayout;
    words->addWidget(m_caption, 1);
    words->addWidget(m_copy, 0, Qt::AlignTop);
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(line);
    column->addWidget(m_scroll, 1);
    column->addLayout(words);
    return part;
}

ReportContent ReportPage::content() const
{
    return {QFileInfo(m_document.path()).fileName(), m_list->checkedSheets(),
            allTables(m_document.study())};
}

ReportOptions ReportPage::options() const
{
    return m_options->options();
}

void ReportPage::refresh()
{
    const QModelIndex before = m_view->currentIndex();
    m_list->setFigures(m_document.isLoaded() ? allFigures(m_document.study())
                                             : std::vector<Figure>());
    const int figures = m_list->rowCount({});
    m_state->setEmpty(figures == 0);
    if (figures > 0)
        m_view->setCurrentIndex(m_list->index(std::clamp(before.row(), 0, figures - 1)));
    showSelected();
}

std::vector<int> ReportPage::selectedRows() const
{
    std::vector<int> rows;
    for (const QModelIndex& index : m_view->selectionModel()->selectedIndexes())
        rows.push_back(index.row());
    return rows;
}

/// Several selected figures show as the sheet that they would make.
std::optional<Sheet> ReportPage::shownSheet() const
{
    if (Sheet sheet = m_list->preview(selectedRows(), m_columns->value()); sheet.panels.size() >= 2)
        return sheet;
    const Sheet* current = m_list->sheet(m_view->currentIndex().row());
    return current ? std::optional(*current) : std::nullopt;
}

void ReportPage::showSelected()
{
    const std::vector<int> rows = selectedRows();
    const auto figures =
        std::ranges::count_if(rows, [this](int row) { return !m_list->isComposed(row); });
    m_compose->setEnabled(figures >= 2);
    m_columns->setEnabled(figures >= 2);
    m_remove->setEnabled(m_list->isComposed(m_view->currentIndex().row()));
    const ReportOptions options = m_options->options();
    m_export->setEnabled(m_document.isLoaded() &&
                         !(options.formats.isEmpty() && options.tableFormats.isEmpty()));
    const std::optional<Sheet> shown = shownSheet();
    m_copy->setEnabled(shown.has_value());
    if (!shown) {
        m_preview->clear();
        m_caption->clear();
        m_size->clear();
        return;
    }
    const QSizeF size = sheetSizeMm(*shown, options.figure);
    m_size->setText(
        tr("%1 × %2 mm, %3 pt").arg(size.width()).arg(size.height()).arg(options.figure.fontPt));
    m_caption->setText(text(shown->caption));
    m_preview->show(*shown, options.figure);
    fitZoom();
}

void ReportPage::compose()
{
    const int row = m_list->compose(selectedRows(), m_columns->value());
    if (row >= 0)
        m_view->setCurrentIndex(m_list->index(row));
}

/// "Fit" makes the whole sheet visible; other zooms are relative to the size on paper.
void ReportPage::fitZoom()
{
    const double zoom = m_zoom->currentData().toDouble();
    if (zoom > 0)
        m_preview->setZoom(zoom);
    else
        m_preview->fitInto(m_scroll->viewport()->size());
}

bool ReportPage::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Resize && m_zoom->currentData().toDouble() <= 0)
        fitZoom();
    return Page::eventFilter(watched, event);
}

} // namespace mla::ui
