// SPDX-License-Identifier: GPL-3.0-or-later
// The table of acceptance measurements: words and choices filter it, columns sort it, groups order
// it, and what is shown can be copied or saved.
#pragma once

#include <vector>

#include <QWidget>

#include "widgets/models/acceptance_filter_proxy.h"
#include "widgets/models/acceptance_table_model.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QTableView;

namespace mla::ui
{

class AcceptanceTable : public QWidget
{
    Q_OBJECT
public:
    explicit AcceptanceTable(QWidget* parent = nullptr);

    void setRows(std::vector<AcceptanceRow> rows);
    void selectRun(const QString& run); ///< marks its first row
    void setDark(bool dark);

signals:
    void runActivated(const QString& run);
    void exportFailed(const QString& message);

private:
    void buildView();
    [[nodiscard]] QHBoxLayout* buildFilters();
    void addChoice(QHBoxLayout* line, int column, const QString& all);
    void fillChoices();
    void updateCount();
    void fitColumns();

    struct Choice {
        int column = 0;
        QString all; ///< "All tasks"
        QComboBox* box = nullptr;
    };
    AcceptanceTableModel* m_model;
    AcceptanceFilterProxy* m_filtered;
    QTableView* m_view;
    QLabel* m_count;
    std::vector<Choice> m_choices;
    int m_sizedRows = 0; ///< that the columns were fitted to
};

} // namespace mla::ui
