// SPDX-License-Identifier: GPL-3.0-or-later
// A guide of four pages, for tests of what shows a guide.
#pragma once

#include <utility>

#include <QDir>
#include <QFile>

namespace mla::test
{

/// index, wheels, doors and, without heading or link to it, attic. False if it cannot be written.
inline bool writeSmallGuide(const QString& folder)
{
    const std::pair<QString, QByteArray> pages[] = {
        {"index", "# Where do I start?\n\nWith [wheels](wheels.md), then [doors](doors.md).\n"},
        {"doors", "# How do doors open?\n\nBy their *hinges*; see [the web](https://example.org).\n"
                  "\n| a | b |\n| --- | --- |\n| 1 | `c` |\n"},
        {"wheels", "# Why do wheels turn?\n\n```\naxle --round\n```\n\nLike doors on hinges.\n"},
        {"attic", "No heading, and no link to it.\n"}};
    if (!QDir().mkpath(folder))
        return false;
    for (const auto& [id, text] : pages) {
        QFile file(folder + "/" + id + ".md");
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
            return false;
    }
    return true;
}

} // namespace mla::test
