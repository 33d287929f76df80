// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/report_options_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QSettings>
#include <QSignalBlocker>
#include <QSpinBox>

#include "widgets/common/plain_text.h"
#include "widgets/plots/size_presets.h"

namespace mla::ui
{

namespace
{

const auto group = QStringLiteral("report");

QStringList checkedNames(const std::vector<QCheckBox*>& boxes)
{
    QStringList names;
    for (const QCheckBox* box : boxes)
        if (box->isChecked())
            names << box->objectName();
    return names;
}

} // namespace

ReportOptionsForm::ReportOptionsForm(QWidget* parent)
    : QWidget(parent), m_preset(new QComboBox(this)), m_dpi(new QSpinBox(this)),
      m_titles(new QCheckBox(tr("Titles a&bove figures"), this))
{
    const ExportOptions defaults;
    m_width = length(20, 1000, defaults.widthMm, tr("mm"), tr("Width of a figure"));
    m_height = length(20, 1000, defaults.heightMm, tr("mm"), tr("Height of a figure"));
    m_font = length(3, 72, defaults.fontPt, tr("pt"), tr("Font size"));
    m_line = length(0.1, 20, defaults.linePt, tr("pt"), tr("Line width"));
    m_dpi->setRange(50, 1200);
    m_dpi->setValue(defaults.dpi);
    m_dpi->setSuffix(tr(" dpi"));
    m_dpi->setAccessibleName(tr("Resolution of PNG files"));
    m_titles->setChecked(defaults.showTitle);
    m_preset->setAccessibleName(tr("Printed size"));
    for (const SizePreset& preset : sizePresets)
        m_preset->addItem(QString::fromUtf8(preset.name));
    m_preset->addItem(tr("Other size"));

    auto* form = new QFormLayout(this);
    form->setContentsMargins(0, 0, 0, 0);
    form->setVerticalSpacing(4);
    const auto addRow = [form](const QString& label, std::initializer_list<QWidget*> widgets) {
        auto* line = new QHBoxLayout;
        for (QWidget* widget : widgets)
            line->addWidget(widget, 1);
        form->addRow(label, line);
    };
    addRow(tr("Size"), {m_preset});
    addRow(tr("W × H"), {m_width, m_height});
    addRow(tr("Font, lines"), {m_font, m_line});
    addRow(tr("PNG"), {m_dpi});
    form->addRow(QString(), m_titles);
    addFormats(tr("Figures"), figureFormats(), m_formats, form);
    QStringList tables;
    for (const TableFormat& format : tableFormats())
        tables << text(format.name);
    addFormats(tr("Tables"), tables, m_tables, form);
    restore();
    connect(m_preset, &QComboBox::activated, this, &ReportOptionsForm::usePreset);
    connect(m_dpi, &QSpinBox::valueChanged, this, &ReportOptionsForm::note);
    connect(m_titles, &QCheckBox::toggled, this, &ReportOptionsForm::note);
    m_ready = true;
    showPreset();
}

QDoubleSpinBox* ReportOptionsForm::length(double low, double high, double value,
                                          const QString& unit, const QString& name)
{
    auto* box = new QDoubleSpinBox(this);
    box->setRange(low, high);
    box->setDecimals(1);
    box->setValue(value);
    box->setSuffix(QLatin1Char(' ') + unit);
    box->setAccessibleName(name);
    box->setToolTip(name);
    connect(box, &QDoubleSpinBox::valueChanged, this, &ReportOptionsForm::note);
    return box;
}

void ReportOptionsForm::addFormats(const QString& title, const QStringList& names,
                                   std::vector<QCheckBox*>& boxes, QFormLayout* form)
{
    auto* line = new QHBoxLayout;
    for (const QString& name : names) {
        auto* box =
            new QCheckBox(name == QLatin1String("latex") ? tr("LaTeX") : name.toUpper(), this);
        box->setObjectName(name);
        box->setAccessibleName(tr("%1 as %2").arg(title, box->text()));
        box->setChecked(true);
        connect(box, &QCheckBox::toggled, this, &ReportOptionsForm::note);
        line->addWidget(box);
        boxes.push_back(box);
    }
    form->addRow(title, line);
}

ReportOptions ReportOptionsForm::options() const
{
    ReportOptions options;
    options.formats = checkedNames(m_formats);
    options.tableFormats = checkedNames(m_tables);
    options.figure.widthMm = m_width->value();
    options.figure.heightMm = m_height->value();
    options.figure.fontPt = m_font->value();
    options.figure.linePt = m_line->value();
    options.figure.dpi = m_dpi->value();
    options.figure.showTitle = m_titles->isChecked();
    return options;
}

void ReportOptionsForm::usePreset(int index)
{
    if (index >= static_cast<int>(sizePresets.size()))
        return;
    const SizePreset& preset = sizePresets[static_cast<std::size_t>(index)];
    m_width->setValue(preset.widthMm);
    m_height->setValue(preset.heightMm);
}

/// The preset that the numbers are, if they are one.
void ReportOptionsForm::showPreset()
{
    int index = 0;
    for (const SizePreset& preset : sizePresets) {
        if (qFuzzyCompare(preset.widthMm, m_width->value()) &&
            qFuzzyCompare(preset.heightMm, m_height->value()))
            break;
        ++index;
    }
    const QSignalBlocker quiet(m_preset);
    m_preset->setCurrentIndex(index);
}

void ReportOptionsForm::restore()
{
    QSettings settings;
    settings.beginGroup(group);
    const auto number = [&settings](QDoubleSpinBox* box, const QString& key) {
        box->setValue(settings.value(key, box->value()).toDouble());
    };
    number(m_width, QStringLiteral("width"));
    number(m_height, QStringLiteral("height"));
    number(m_font, QStringLiteral("font"));
    number(m_line, QStringLiteral("line"));
    m_dpi->setValue(settings.value(QStringLiteral("dpi"), m_dpi->value()).toInt());
    m_titles->setChecked(settings.value(QStringLiteral("titles"), m_titles->isChecked()).toBool());
    for (const auto& boxes : {m_formats, m_tables})
        for (QCheckBox* box : boxes)
            box->setChecked(settings.value(box->objectName(), true).toBool());
}

void ReportOptionsForm::note()
{
    if (!m_ready)
        return;
    showPreset();
    QSettings settings;
    settings.beginGroup(group);
    settings.setValue(QStringLiteral("width"), m_width->value());
    settings.setValue(QStringLiteral("height"), m_height->value());
    settings.setValue(QStringLiteral("font"), m_font->value());
    settings.setValue(QStringLiteral("line"), m_line->value());
    settings.setValue(QStringLiteral("dpi"), m_dpi->value());
    settings.setValue(QStringLiteral("titles"), m_titles->isChecked());
    for (const auto& boxes : {m_formats, m_tables})
        for (const QCheckBox* box : boxes)
            settings.setValue(box->objectName(), box->isChecked());
    emit changed();
}

} // namespace mla::ui
