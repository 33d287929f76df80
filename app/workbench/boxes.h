// SPDX-License-Identifier: GPL-3.0-or-later
// The two boxes of the window. Neither blocks: they open, and call back.
#pragma once

#include <functional>

class QWidget;

namespace mla::ui
{

/// Asks whether to end the running job and close; `stop` is called if the user says so.
void askToStopAndClose(QWidget* parent, const std::function<void()>& stop);
void showAbout(QWidget* parent);

} // namespace mla::ui
