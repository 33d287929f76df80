// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/export_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>

#include "widgets/plots/size_presets.h"

namespace mla::ui
{
namespace
{

constexpr auto kFolderKey = "export/folder";

QDoubleSpinBox* spinBox(double low, double high, double value, const QString& unit, int decimals)
{
    auto* box = new QDoubleSpinBox;
    box->setRange(low, high);
    box->setDecimals(decimals);
    box->setValue(value);
    box->setSuffix(QStringLiteral(" ") + unit);
    return box;
}

} // namespace

ExportDialog::ExportDialog(const QString& fileStem, QWidget* parent)
    : QDialog(parent), m_stem(fileStem), m_format(new QComboBox), m_preset(new QComboBox)
{
    setWindowTitle(tr("Export figure"));
    const ExportOptions defaults;
    m_width = spinBox(20, 1000, defaults.widthMm, QStringLiteral("mm"), 1);
    m_height = spinBox(20, 1000, defaults.heightMm, QStringLiteral("mm"), 1);
    m_font = spinBox(3, 72, defaults.fontPt, QStringLiteral("pt"), 1);
    m_line = spinBox(0.1, 20, defaults.linePt, QStringLiteral("pt"), 2);
    m_dpi = new QSpinBox;
    m_dpi->setRange(50, 1200);
    m_dpi->setValue(defaults.dpi);
    m_dpi->setSuffix(QStringLiteral(" dpi"));
    m_dpi->setEnabled(false);
    m_format->addItems({tr("PDF"), tr("SVG"), tr("PNG")});
    for (const SizePreset& preset : sizePresets)
        m_preset->addItem(QString::fromUtf8(preset.name));

    auto* form = new QFormLayout(this);
    form->addRow(tr("&Format"), m_format);
    form->addRow(tr("&Size"), m_preset);
    form->addRow(tr("&Width"), m_width);
    form->addRow(tr("&Height"), m_height);
    form->addRow(tr("F&ont"), m_font);
    form->addRow(tr("&Lines"), m_line);
    form->addRow(tr("&Resolution"), m_dpi);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel);
    buttons->button(QDialogButtonBox::Save)->setText(tr("Choose file…"));
    form->addRow(buttons);

    connect(buttons, &QDialogButtonBox::accepted, this, &ExportDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &ExportDialog::reject);
    connect(m_format, &QComboBox::currentIndexChanged, this,
            [this](int index) { m_dpi->setEnabled(index == 2); });
    connect(m_preset, &QComboBox::activated, this, [this](int index) {
        m_width->setValue(sizePresets[static_cast<std::size_t>(index)].widthMm);
        m_height->setValue(sizePresets[static_cast<std::size_t>(index)].heightMm);
    });
}

ExportOptions ExportDialog::options() const
{
    ExportOptions options;
    options.widthMm = m_width->value();
    options.heightMm = m_height->value();
    options.fontPt = m_font->value();
    options.linePt = m_line->value();
    options.dpi = m_dpi->value();
    return options;
}

void ExportDialog::accept()
{
    QSettings settings;
    const QString suffix = m_format->currentText().toLower();
    const QDir folder(settings.value(QLatin1String(kFolderKey), QDir::homePath()).toString());
    QString path = QFileDialog::getSaveFileName(
        this, tr("Export figure"), folder.filePath(m_stem + QLatin1Char('.') + suffix),
        tr("%1 files (*.%2)").arg(m_format->currentText(), suffix));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().toLower() != suffix)
        path += QLatin1Char('.') + suffix;
    settings.setValue(QLatin1String(kFolderKey), QFileInfo(path).absolutePath());
    m_path = path;
    QDialog::accept();
}

} // namespace mla::ui
