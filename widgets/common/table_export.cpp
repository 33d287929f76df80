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

namespace
{

/// By the name's ending; CSV if it is another.
const TableFormat& formatOf(const QString& path)
{
    for (const TableFormat& format : tableFormats())
        if (path.endsWith(text(format.extension)))
            return format;
    return *findTableFormat("csv");
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
    const auto addCopy = [&](const QString& label, const char* format) {
        menu->addAction(label, this, [this, render = findTableFormat(format)->render] {
            QGuiApplication::clipboard()->setText(ui::text(render(m_table())));
        });
    };
    addCopy(tr("Copy as CSV"), "csv");
    addCopy(tr("Copy as LaTeX"), "latex");
    addCopy(tr("Copy as Markdown"), "md");
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
        const Status written =
            writeFileAtomically(filePath(path), formatOf(path).render(m_table()));
        if (!written)
            emit exportFailed(ui::text(written.error().text()));
    });
    dialog->open();
}

} // namespace mla::ui
