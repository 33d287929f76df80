// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/boxes.h"

#include <QAbstractButton>
#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>

#include "widgets/common/theme.h"

namespace mla::ui
{

namespace
{

QString translated(const char* text)
{
    return QCoreApplication::translate("Boxes", text);
}

} // namespace

void askToStopAndClose(QWidget* parent, const std::function<void()>& stop)
{
    const auto name = QStringLiteral("stopAndClose");
    if (parent->findChild<QMessageBox*>(name))
        return; // the question stands already
    auto* box = new QMessageBox(QMessageBox::Question, translated("A job is running"),
                                translated("Stop the running job and close? Finished layers and "
                                           "drafts are kept, and the run can be resumed later."),
                                QMessageBox::NoButton, parent);
    box->setObjectName(name);
    box->setAttribute(Qt::WA_DeleteOnClose);
    const QAbstractButton* accept =
        box->addButton(translated("Stop and close"), QMessageBox::AcceptRole);
    box->addButton(translated("Keep running"), QMessageBox::RejectRole);
    QObject::connect(box, &QMessageBox::buttonClicked, parent,
                     [stop, accept](const QAbstractButton* clicked) {
                         if (clicked == accept)
                             stop();
                     });
    box->open();
}

void showAbout(QWidget* parent)
{
    auto* box = new QMessageBox(
        QMessageBox::NoIcon, translated("About"),
        translated("MLA Draft Workbench %1\n\nConverts GQA draft models to MLA, refines them layer "
                   "by layer, and measures what their target accepts.\n\n"
                   "Licence: GPL-3.0-or-later")
            .arg(QCoreApplication::applicationVersion()),
        QMessageBox::Ok, parent);
    box->setIconPixmap(applicationIcon().pixmap(64));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

void askForStudyFile(QWidget* parent, const QString& start,
                     const std::function<void(const QString&)>& chosen)
{
    auto* dialog =
        new QFileDialog(parent, translated("Open study"), QFileInfo(start).absolutePath(),
                        translated("Studies (*.h5);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, chosen);
    dialog->open();
}

void askForReportFolder(QWidget* parent, const QString& start,
                        const std::function<void(const QString&)>& chosen)
{
    auto* dialog = new QFileDialog(parent, translated("Folder for the report"),
                                   QFileInfo(start).absolutePath());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, chosen);
    dialog->open();
}

} // namespace mla::ui
