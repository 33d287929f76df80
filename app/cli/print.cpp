// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/print.h"

#include <cstdio>

using nlohmann::json;

namespace mla::cli
{
namespace
{

/// One line. Names of files may hold anything; JSON is UTF-8.
std::string line(const json& object)
{
    return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

bool writeAll(const std::string& text)
{
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
           std::fflush(stdout) == 0;
}

} // namespace

std::string errorName(ErrorCode code)
{
    switch (code) {
    case ErrorCode::Usage:
        return "usage";
    case ErrorCode::BadInput:
        return "bad_input";
    case ErrorCode::ComputeFailed:
        return "compute_failed";
    case ErrorCode::Cancelled:
        return "cancelled";
    }
    return {};
}

int exitCode(ErrorCode code)
{
    switch (code) {
    case ErrorCode::Usage:
        return 2;
    case ErrorCode::BadInput:
        return 3;
    case ErrorCode::ComputeFailed:
        return 4;
    case ErrorCode::Cancelled:
        return 130;
    }
    return 4;
}

int printError(const Error& error, bool asJson)
{
    std::fprintf(stderr, "mla-draft: %s\n", error.text().c_str());
    if (asJson)
        writeAll(line({{"error",
                        {{"code", errorName(error.code)},
                         {"message", error.message},
                         {"context", error.context},
                         {"hint", error.hint}}}}));
    return exitCode(error.code);
}

int printOutput(const Output& output, bool asJson)
{
    if (writeAll(asJson ? line(output.json) : output.text))
        return 0;
    std::fputs("mla-draft: standard output cannot be written\n", stderr);
    return exitCode(ErrorCode::ComputeFailed);
}

} // namespace mla::cli
