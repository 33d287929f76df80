// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/path_field.h"

#include <QCompleter>
#include <QDropEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QFileSystemModel>
#include <QHBoxLayout>
#include <QMimeData>
#include <QToolButton>

namespace mla::ui
{

PathField::PathField(Kind kind, const QString& title, QWidget* parent)
    : QWidget(parent), m_kind(kind), m_title(title), m_edit(new QLineEdit(this))
{
    setFocusProxy(m_edit);
    m_edit->setAccessibleName(title);
    m_edit->installEventFilter(this);
    if (kind != Kind::OpenFiles) {
        auto* completer = new QCompleter(m_edit);
        auto* files = new QFileSystemModel(completer);
        files->setRootPath(QString());
        completer->setModel(files);
        m_edit->setCompleter(completer);
    }
    auto* button = new QToolButton(this);
    button->setText(QStringLiteral("…"));
    button->setAccessibleName(tr("Choose: %1").arg(title));
    button->setToolTip(tr("Choose…"));
    connect(button, &QToolButton::clicked, this, &PathField::browse);
    connect(m_edit, &QLineEdit::textChanged, this, &PathField::changed);
    connect(m_edit, &QLineEdit::textEdited, this, &PathField::editedByUser);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_edit, 1);
    layout->addWidget(button);
}

QString PathField::path() const
{
    return m_edit->text().trimmed();
}

QStringList PathField::paths() const
{
    QStringList all;
    for (const QString& part : m_edit->text().split(QLatin1Char(','), Qt::SkipEmptyParts))
        if (const QString trimmed = part.trimmed(); !trimmed.isEmpty())
            all << trimmed;
    return all;
}

void PathField::setPath(const QString& path)
{
    m_edit->setText(path);
}

void PathField::setPlaceholder(const QString& text)
{
    m_edit->setPlaceholderText(text);
}

void PathField::choose(const QStringList& paths)
{
    m_edit->setText(paths.join(QStringLiteral(", ")));
    emit editedByUser();
    emit chosen();
}

void PathField::browse()
{
    const QStringList now = paths();
    auto* dialog = new QFileDialog(this, m_title, now.value(0), m_filter);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    if (m_kind == Kind::Folder)
        dialog->setFileMode(QFileDialog::Directory);
    else if (m_kind == Kind::OpenFiles)
        dialog->setFileMode(QFileDialog::ExistingFiles);
    else
        dialog->setAcceptMode(QFileDialog::AcceptSave);
    if (m_kind == Kind::SaveFile) {
        dialog->setDefaultSuffix(QStringLiteral("h5"));
        dialog->setOption(QFileDialog::DontConfirmOverwrite);
        dialog->selectFile(QFileInfo(path()).fileName());
    }
    connect(dialog, &QFileDialog::filesSelected, this, &PathField::choose);
    dialog->open();
}

bool PathField::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_edit)
        return QWidget::eventFilter(watched, event);
    if (event->type() != QEvent::DragEnter && event->type() != QEvent::Drop)
        return QWidget::eventFilter(watched, event);
    auto* drop = static_cast<QDropEvent*>(event); // a drag enter event is one too
    QStringList files;
    for (const QUrl& url : drop->mimeData()->urls())
        if (url.isLocalFile())
            files << url.toLocalFile();
    if (files.isEmpty())
        return QWidget::eventFilter(watched, event);
    drop->acceptProposedAction();
    if (event->type() == QEvent::Drop)
        choose(m_kind == Kind::OpenFiles ? files : files.mid(0, 1));
    return true;
}

} // namespace mla::ui
