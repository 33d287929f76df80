// SPDX-License-Identifier: GPL-3.0-or-later
// A button that copies or saves a table as CSV, LaTeX or Markdown.
#pragma once

#include <functional>

#include <QToolButton>

#include "core/report/tables.h"

namespace mla::ui
{

class TableExportButton : public QToolButton
{
    Q_OBJECT
public:
    /// `table` is asked for whenever the user copies or saves.
    explicit TableExportButton(std::function<Table()> table, QWidget* parent = nullptr);

signals:
    void exportFailed(const QString& message);

private:
    void saveAs();
    std::function<Table()> m_table;
};

} // namespace mla::ui
