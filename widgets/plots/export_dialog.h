// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for the printed size of a figure and where to write it.
#pragma once

#include <QDialog>

#include "widgets/plots/figure_export.h"

class QComboBox;
class QDoubleSpinBox;
class QSpinBox;

namespace mla::ui
{

class ExportDialog : public QDialog
{
    Q_OBJECT

public:
    explicit ExportDialog(const QString& fileStem, QWidget* parent = nullptr);

    [[nodiscard]] ExportOptions options() const;
    /// The chosen file; empty until accepted.
    [[nodiscard]] QString path() const { return m_path; }

public slots:
    void accept() override;

private:
    QString m_stem, m_path;
    QComboBox* m_format;
    QComboBox* m_preset;
    QDoubleSpinBox* m_width;
    QDoubleSpinBox* m_height;
    QDoubleSpinBox* m_font;
    QDoubleSpinBox* m_line;
    QSpinBox* m_dpi;
};

} // namespace mla::ui
