// SPDX-License-Identifier: GPL-3.0-or-later
// The boxes and file dialogs of the window. None blocks: they open, and call back.
#pragma once

#include <functional>

class QString;
class QWidget;

namespace mla::ui
{

/// Asks whether to end the running job and close; `stop` is called if the user says so.
void askToStopAndClose(QWidget* parent, const std::function<void()>& stop);
void showAbout(QWidget* parent);
/// `start`: a file of the study's folder, which shows first.
void askForStudyFile(QWidget* parent, const QString& start,
                     const std::function<void(const QString&)>& chosen);
void askForReportFolder(QWidget* parent, const QString& start,
                        const std::function<void(const QString&)>& chosen);

} // namespace mla::ui
