// SPDX-License-Identifier: GPL-3.0-or-later
// The Python of the stacks that people serve with, as tests find it.
#pragma once

#include <QProcess>
#include <QString>

namespace mla::test
{

/// Does the Python that MLA_PYTHON names have the package? False without such a Python.
inline bool canImport(const char* package)
{
    constexpr int milliseconds = 60000;
    const QString python = qEnvironmentVariable("MLA_PYTHON");
    QProcess process;
    process.start(python, {"-c", QString("import importlib.util, sys; "
                                         "sys.exit(importlib.util.find_spec('%1') is None)")
                                     .arg(package)});
    return !python.isEmpty() && process.waitForFinished(milliseconds) && process.exitCode() == 0;
}

} // namespace mla::test
