// SPDX-License-Identifier: GPL-3.0-or-later
// Between core's UTF-8 std::string and Qt's QString and paths.
#pragma once

#include <filesystem>
#include <string>

#include <QFile>
#include <QString>

namespace mla::ui
{

inline QString text(const std::string& utf8)
{
    return QString::fromStdString(utf8);
}
inline std::filesystem::path filePath(const QString& path)
{
    return {QFile::encodeName(path).toStdString()};
}
inline QString text(const std::filesystem::path& path)
{
    return QFile::decodeName(QByteArray::fromStdString(path.string()));
}

} // namespace mla::ui
