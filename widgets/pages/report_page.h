// SPDX-License-Identifier: GPL-3.0-or-later
// The figures of the study at their printed size, sheets composed of them, and the report that
// writes them with their numbers.
#pragma once

#include <optional>

#include "widgets/models/report_list_model.h"
#include "widgets/pages/page.h"
#include "widgets/plots/report_writer.h"

class QComboBox;
class QLabel;
class QListView;
class QPushButton;
class QScrollArea;
class QSpinBox;

namespace mla::ui
{

class EmptyState;
class ReportOptionsForm;
class SheetPreview;

class ReportPage : public Page
{
    Q_OBJECT
public:
    ReportPage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

    /// The checked figures and sheets, and every table of the study.
    [[nodiscard]] ReportContent content() const;
    [[nodiscard]] ReportOptions options() const; ///< without a directory

signals:
    void exportRequested(); ///< the user pressed "Export report…"

protected:
    void refresh() override;
    void showRun() override {} // a report is about the whole study

private:
    QWidget* buildList();
    QWidget* buildPreview();
    QWidget* buildButtons(QWidget* parent);
    [[nodiscard]] std::vector<int> selectedRows() const;
    [[nodiscard]] std::optional<Sheet> shownSheet() const;
    void showSelected();
    void compose();
    void fitZoom();
    bool eventFilter(QObject* watched, QEvent* event) override;

    ReportListModel* m_list;
    QListView* m_view;
    ReportOptionsForm* m_options;
    SheetPreview* m_preview;
    QScrollArea* m_scroll = nullptr;
    QComboBox* m_zoom = nullptr;
    QLabel *m_caption = nullptr, *m_size = nullptr;
    QSpinBox* m_columns = nullptr;
    QPushButton *m_compose = nullptr, *m_remove = nullptr, *m_copy = nullptr, *m_export = nullptr;
    EmptyState* m_state = nullptr;
};

} // namespace mla::ui
