// SPDX-License-Identifier: GPL-3.0-or-later
// The last step of every command: result or error to the right streams, and the exit code.
#pragma once

#include "app/cli/command.h"

namespace mla::cli
{

/// "usage", "bad_input", "compute_failed", "cancelled"
std::string errorName(ErrorCode code);
/// 2, 3, 4, 130
int exitCode(ErrorCode code);

/// Text to standard error, with `json` the contract's object to standard output; the exit code.
int printError(const Error& error, bool json);
/// Standard output; 0, or 4 when it cannot be written.
int printOutput(const Output& output, bool json);

} // namespace mla::cli
