// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/progress_delegate.h"

#include <QApplication>
#include <QStyleOptionProgressBar>

namespace mla::ui
{

void ProgressDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                             const QModelIndex& index) const
{
    const QVariant progress = index.data(m_role);
    if (!progress.isValid()) {
        QStyledItemDelegate::paint(painter, option, index);
        return;
    }
    QStyleOptionProgressBar bar;
    bar.rect = option.rect.adjusted(2, 2, -2, -2);
    bar.palette = option.palette;
    bar.fontMetrics = option.fontMetrics;
    bar.state = QStyle::State_Enabled | QStyle::State_Horizontal;
    bar.minimum = 0;
    bar.maximum = 1000;
    bar.progress = static_cast<int>(1000 * progress.toDouble());
    bar.text = index.data(Qt::DisplayRole).toString();
    bar.textVisible = true;
    bar.textAlignment = Qt::AlignCenter;
    QApplication::style()->drawControl(QStyle::CE_ProgressBar, &bar, painter, option.widget);
}

} // namespace mla::ui
