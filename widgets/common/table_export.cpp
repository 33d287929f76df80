// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/table_export.h"

#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QMenu>

#include "core/base/file.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

QString tableText(const Table& table, TableFormat format)
{
    switch (format) {
    case TableFormat::Latex:
        return text(toLatex(table));
    case TableFormat::Markdown:
        return text(toMarkdown(table));
    default:
        return text(toCsv(table));
    }
}

namespace
{

TableFormat formatOf(const QString& path)
{
    if (path.endsWith(QLatin1String(".tex")))
        return TableFormat::Latex;
    return path.endsWith(QLatin1String(".md")) ? TableFormat::Markdown : TableFormat::Csv;
}

} // namespace

TableExportButton::TableExportButton(std::function<Table()> table, QWidget* parent)
    : QToolButton(parent), m_table(std::move(table))
{
    setText(tr("Export table"));
    setToolTip(tr("Copy or save this table as CSV, LaTeX or Markdown"));
    setAccessibleName(text());
    setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(this);
    const auto addCopy = [&](const QString& label, TableFormat format) {
        menu->addAction(label, this, [this, format] {
            QGuiApplication::clipboard()->setText(tableText(m_table(), format));
        });
    };
    addCopy(tr("Copy as CSV"), TableFormat::Csv);
    addCopy(tr("Copy as LaTeX"), TableFormat::Latex);
    addCopy(tr("Copy as Markdown"), TableFormat::Markdown);
    menu->addSeparator();
    menu->addAction(tr("Save as…"), this, &TableExportButton::saveAs);
    setMenu(menu);
}

void TableExportButton::saveAs()
{
    auto* dialog = new QFileDialog(window(), tr("Save table"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setNameFilters({tr("CSV (*.csv)"), tr("LaTeX (*.tex)"), tr("Markdown (*.md)")});
    dialog->setDefaultSuffix(QStringLiteral("csv"));
    connect(dialog, &QFileDialog::filterSelected, dialog, [dialog](const QString& filter) {
        dialog->setDefaultSuffix(filter.section(QLatin1Char('.'), 1).chopped(1));
    });
    dialog->selectFile(ui::text(m_table().id));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
        const QByteArray content = tableText(m_table(), formatOf(path)).toUtf8();
        const Status written = writeFileAtomically(filePath(path), content.toStdString());
        if (!written)
            emit exportFailed(ui::text(written.error().text()));
    });
    dialog->open();
}

} // namespace mla::ui
