// SPDX-License-Identifier: GPL-3.0-or-later
// Options that several commands share, checks of values, and the look of the help text.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "core/base/result.h"
#include "core/pipeline/settings.h"

namespace mla::cli
{

/// --device, --threads, --seed, --json, --quiet.
void addCommonOptions(CLI::App& parser, CommonOptions& options);
/// --calibration, --sequences, --length. Without `recorded` the defaults are shown; with it the
/// calibration recorded in the draft is the default, and the two sizes need --calibration.
CLI::Option* addCalibrationOptions(CLI::App& parser, CalibrationSettings& settings, bool recorded);
/// The positional model directory.
void addModelArgument(CLI::App& parser, std::string& path, const std::string& name,
                      const std::string& help);
/// -o DIR, required, and --overwrite.
void addOutputOptions(CLI::App& parser, std::string& output, bool& overwrite);
/// --study S.h5
CLI::Option* addStudyOption(CLI::App& parser, std::string& study);

/// --chat-template, and --python FILE that it needs.
CLI::Option* addChatOptions(CLI::App& parser, bool& chatTemplate, std::string& python);

/// Value checks; CLI11 puts the option's name before their messages.
CLI::Validator atLeast(int least);
CLI::Validator notNegative();

/// "1,2,3" (commas or blanks) as token ids; Usage errors name `option`.
Result<std::vector<int>> parseIds(const std::string& text, const std::string& option);
/// "A-B" or "A", 0-based and inclusive.
Result<LayerRange> parseLayers(const std::string& text);

/// An absent option's empty text as nullopt.
std::optional<std::filesystem::path> optionalPath(const std::string& text);

/// Usage line with the required options, defaults after descriptions, aligned columns.
class HelpFormatter : public CLI::Formatter
{
public:
    HelpFormatter();
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
};

} // namespace mla::cli
