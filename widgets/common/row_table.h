// SPDX-License-Identifier: GPL-3.0-or-later
// The look of tables whose rows are things to choose.
#pragma once

class QTableView;

namespace mla::ui
{

/// One row at a time is selected as a whole; striped, without grid and row numbers. Tab leaves the
/// table instead of walking through its cells.
void setUpRowTable(QTableView& view);

} // namespace mla::ui
