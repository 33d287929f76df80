// SPDX-License-Identifier: GPL-3.0-or-later
// The user guide as it stands in a folder: one Markdown file a question.
#pragma once

#include <vector>

#include <QString>

namespace mla::ui
{

struct HelpPage {
    QString id;    ///< name of the file without .md
    QString title; ///< its first heading, a question
    QString text;  ///< what a reader sees of it, to be searched
};

/// The page that links to all others, and the first of them.
inline const auto helpIndex = QStringLiteral("index");

/// Every page of `folder`: the index, then in the order of its links, then the others by name.
/// Empty if there is no such folder.
[[nodiscard]] std::vector<HelpPage> readHelpPages(const QString& folder);

/// Ids of the pages that a page's Markdown links to, in order, each once.
[[nodiscard]] QStringList linkedHelpPages(const QString& markdown);

} // namespace mla::ui
