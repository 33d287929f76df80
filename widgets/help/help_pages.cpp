// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/help/help_pages.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QTextDocument>

namespace mla::ui
{

namespace
{

const auto ending = QStringLiteral(".md");

QString readMarkdown(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

HelpPage pageOf(const QString& id, const QString& markdown)
{
    static const QRegularExpression heading(QStringLiteral("^# +(.+?) *$"),
                                            QRegularExpression::MultilineOption);
    const QString title = heading.match(markdown).captured(1);
    QTextDocument document;
    document.setMarkdown(markdown);
    return {id, title.isEmpty() ? id : title, document.toPlainText()};
}

} // namespace

QStringList linkedHelpPages(const QString& markdown)
{
    static const QRegularExpression link(QStringLiteral("\\]\\(([^)/:#]+)\\.md\\)"));
    QStringList ids;
    for (auto found = link.globalMatch(markdown); found.hasNext();)
        ids << found.next().captured(1);
    ids.removeDuplicates();
    return ids;
}

std::vector<HelpPage> readHelpPages(const QString& folder)
{
    const QDir directory(folder);
    if (folder.isEmpty() || !directory.exists()) // an empty name would be the current folder
        return {};
    QStringList ids{helpIndex};
    ids << linkedHelpPages(readMarkdown(directory.filePath(helpIndex + ending)));
    for (const QString& name : directory.entryList({QLatin1Char('*') + ending}, QDir::Files))
        ids << name.chopped(ending.size());
    ids.removeDuplicates();
    std::vector<HelpPage> pages;
    for (const QString& id : ids)
        if (const QString path = directory.filePath(id + ending); QFile::exists(path))
            pages.push_back(pageOf(id, readMarkdown(path)));
    return pages;
}

} // namespace mla::ui
