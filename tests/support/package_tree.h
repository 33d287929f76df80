// SPDX-License-Identifier: GPL-3.0-or-later
// What the packaging tests share: running tools, and where LibTorch stands.
#pragma once

#include <QFileInfo>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>

#include "tests/support/cli_program.h"

namespace mla::test
{

inline QString packageSource()
{
    return QStringLiteral(MLA_TEST_DATA "/../installer/package");
}

/// Runs `program`; `changes` are NAME=VALUE, or NAME alone to unset it.
inline CliResult runTool(const QString& program, const QStringList& arguments,
                         const QStringList& changes = {}, int seconds = 600)
{
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const QString& change : changes) {
        const auto equals = change.indexOf('=');
        if (equals < 0)
            environment.remove(change);
        else
            environment.insert(change.left(equals), change.mid(equals + 1));
    }
    QProcess process;
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    return finished(process, seconds);
}

inline bool hasTool(const QString& name)
{
    return !QStandardPaths::findExecutable(name).isEmpty();
}

inline QByteArray contents(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// The folder with lib/ of the LibTorch that the programs were built with.
inline QString libtorchRoot()
{
    static const QRegularExpression line("SHLIBDEPS_PRIVATE_DIRS \"([^\"]*)/lib\"");
    return line.match(QString::fromUtf8(contents(QStringLiteral(MLA_BIN "/../CPackConfig.cmake"))))
        .captured(1);
}

} // namespace mla::test
