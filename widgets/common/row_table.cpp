// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/row_table.h"

#include <QHeaderView>
#include <QTableView>

namespace mla::ui
{

void setUpRowTable(QTableView& view)
{
    view.setSelectionBehavior(QAbstractItemView::SelectRows);
    view.setSelectionMode(QAbstractItemView::SingleSelection);
    view.setAlternatingRowColors(true);
    view.setShowGrid(false);
    view.setTabKeyNavigation(false);
    view.verticalHeader()->hide();
    view.verticalHeader()->setDefaultSectionSize(view.fontMetrics().height() + 6);
    view.horizontalHeader()->setHighlightSections(false);
}

} // namespace mla::ui
