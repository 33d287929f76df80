// SPDX-License-Identifier: GPL-3.0-or-later
// What the target accepts: a table that sorts and filters, variants side by side, draft positions.
#pragma once

#include <vector>

#include "widgets/models/acceptance_table_model.h"
#include "widgets/pages/page.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QTableView;

namespace mla::ui
{

class EmptyState;

class AcceptancePage : public Page
{
    Q_OBJECT
public:
    AcceptancePage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

protected:
    void refresh() override;
    void showRun() override;
    void changeEvent(QEvent* event) override;

private:
    /// A plot with a choice of figures above it (one per converter and k).
    struct Choice {
        QComboBox* box = nullptr;
        PlotView* plot = nullptr;
        std::vector<Figure> figures;
    };
    QWidget* buildTable();
    QWidget* buildChoice(Choice& choice, const QString& name);
    void fill(Choice& choice, std::vector<Figure> figures);
    /// Turns to the figure of `converter` unless one of it is shown.
    void follow(Choice& choice, const QString& converter);
    void updateCount();

    AcceptanceTableModel* m_model;
    AcceptanceFilterProxy* m_filtered;
    QTableView* m_view;
    QLineEdit* m_filter;
    QLabel* m_count;
    Choice m_byTask, m_byPosition;
    EmptyState* m_state;
    bool m_sized = false;
};

} // namespace mla::ui
