// SPDX-License-Identifier: GPL-3.0-or-later
// Printed size, type and file formats of a report. What was chosen last is kept in the settings.
#pragma once

#include <QWidget>

#include "widgets/plots/report_writer.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QSpinBox;

namespace mla::ui
{

class ReportOptionsForm : public QWidget
{
    Q_OBJECT
public:
    explicit ReportOptionsForm(QWidget* parent = nullptr);
    [[nodiscard]] ReportOptions options() const; ///< without a directory

signals:
    void changed();

private:
    QDoubleSpinBox* length(double low, double high, double value, const QString& unit,
                           const QString& name);
    void addFormats(const QString& title, const QStringList& names, std::vector<QCheckBox*>& boxes,
                    class QFormLayout* form);
    void usePreset(int index);
    void showPreset();
    void restore();
    void note();

    QComboBox* m_preset;
    QDoubleSpinBox *m_width, *m_height, *m_font, *m_line;
    QSpinBox* m_dpi;
    QCheckBox* m_titles;
    std::vector<QCheckBox*> m_formats, m_tables;
    bool m_ready = false;
};

} // namespace mla::ui
