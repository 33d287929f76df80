// SPDX-License-Identifier: GPL-3.0-or-later
// What a view shows (filtered, sorted) as a table of core, ready for CSV, LaTeX and Markdown.
#pragma once

#include <QAbstractItemModel>
#include <QString>

#include "core/report/tables.h"

namespace mla::ui
{

/// Of a tree the rows without children. Numbers come from `valueRole` in full precision, texts as
/// displayed, missing values empty.
[[nodiscard]] Table tableFromModel(const QAbstractItemModel& model, int valueRole,
                                   const QString& id, const QString& title);

} // namespace mla::ui
