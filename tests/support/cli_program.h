// SPDX-License-Identifier: GPL-3.0-or-later
// Drives the built mla-draft as its users do.
#pragma once

#include <csignal>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStringList>
#include <QTest>

namespace mla::test
{

struct CliResult {
    int exitCode = -1; ///< -1 when the program crashed or did not end
    QByteArray out, err;

    /// The one JSON object on standard output; empty if it is anything else.
    [[nodiscard]] QJsonObject json() const { return QJsonDocument::fromJson(out).object(); }
    [[nodiscard]] QJsonObject error() const { return json().value("error").toObject(); }
    [[nodiscard]] QByteArray text() const
    {
        return "exit " + QByteArray::number(exitCode) + "\n" + out + "\n" + err;
    }
};

inline QString programPath()
{
    return QStringLiteral(MLA_BIN "/mla-draft");
}
inline QString demoCheckpoint()
{
    return QStringLiteral(MLA_RESOURCES "/demo/stories260K");
}

inline CliResult finished(QProcess& process, int seconds)
{
    constexpr int milliseconds = 1000;
    CliResult result;
    if (!process.waitForFinished(seconds * milliseconds))
        process.kill();
    else if (process.exitStatus() == QProcess::NormalExit)
        result.exitCode = process.exitCode();
    process.waitForFinished();
    result.out = process.readAllStandardOutput();
    result.err = process.readAllStandardError();
    return result;
}

inline CliResult runCli(const QStringList& arguments, int seconds = 600)
{
    QProcess process;
    process.start(programPath(), arguments);
    return finished(process, seconds);
}

/// Starts, waits until `marker` has come on standard error, sends SIGINT.
inline CliResult interruptCli(const QStringList& arguments, const QByteArray& marker)
{
    constexpr int pause = 200, tries = 600, seconds = 120;
    QProcess process;
    process.start(programPath(), arguments);
    QByteArray seen;
    for (int i = 0; i < tries && !seen.contains(marker) && process.state() != QProcess::NotRunning;
         ++i) {
        process.waitForReadyRead(pause);
        seen += process.readAllStandardError();
    }
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);
    CliResult result = finished(process, seconds);
    result.err.prepend(seen);
    return result;
}

inline bool writeText(const QString& path, const QByteArray& text)
{
    QFile file(path);
    return file.open(QIODevice::WriteOnly) && file.write(text) == text.size();
}

} // namespace mla::test
