// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/options.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <regex>

namespace mla::cli
{
namespace
{

const char* const commonGroup = "Common options";
const char* const calibrationGroup = "Calibration";

std::string checkDevice(const std::string& device)
{
    static const std::regex known("auto|cpu|cuda(:[0-9]{1,3})?");
    return std::regex_match(device, known)
               ? std::string()
               : "'" + device + "' is no device; expected auto, cpu, cuda or cuda:N";
}

/// A whole non-negative number that fills [begin, end).
std::optional<int> wholeNumber(const char* begin, const char* end)
{
    int value = 0;
    const auto [stopped, problem] = std::from_chars(begin, end, value);
    if (problem != std::errc() || stopped != end || value < 0)
        return std::nullopt;
    return value;
}

} // namespace

void addCommonOptions(CLI::App& parser, CommonOptions& options)
{
    parser
        .add_option("--device", options.compute.device,
                    "auto, cpu, cuda or cuda:N; auto takes a GPU when there is one")
        ->type_name("DEVICE")
        ->check(CLI::Validator(checkDevice, ""))
        ->capture_default_str()
        ->group(commonGroup);
    parser
        .add_option("--threads", options.compute.threads,
                    "worker threads, 0 = one per core; never changes a result")
        ->type_name("N")
        ->check(atLeast(0))
        ->capture_default_str()
        ->group(commonGroup);
    parser.add_option("--seed", options.compute.seed, "seed of every random number")
        ->type_name("N")
        ->capture_default_str()
        ->group(commonGroup);
    parser.add_flag("--json", options.json, "one JSON object on standard output, errors too")
        ->group(commonGroup);
    parser.add_flag("--quiet", options.quiet, "no progress on standard error")->group(commonGroup);
}

CLI::Option* addCalibrationOptions(CLI::App& parser, CalibrationSettings& settings, bool recorded)
{
    CLI::Option* source = parser.add_option(
        "--calibration", settings.source,
        "self (text sampled from the model itself), self:FILE (prompts\nof FILE), "
        "or text or JSONL files, joined by commas");
    CLI::Option* sequences =
        parser.add_option("--sequences", settings.sequences, "calibration sequences");
    CLI::Option* length = parser.add_option("--length", settings.length, "tokens per sequence");
    source->type_name("SOURCE")->group(calibrationGroup);
    sequences->type_name("N")->check(atLeast(2))->capture_default_str()->group(calibrationGroup);
    length->type_name("T")->check(atLeast(2))->capture_default_str()->group(calibrationGroup);
    if (recorded) {
        source->default_str("what the draft was calibrated on");
        sequences->needs(source);
        length->needs(source);
    } else {
        source->capture_default_str();
    }
    return source;
}

void addModelArgument(CLI::App& parser, std::string& path, const std::string& name,
                      const std::string& help)
{
    parser.add_option(name, path, help)->type_name("DIR")->required();
}

void addOutputOptions(CLI::App& parser, std::string& output, bool& overwrite)
{
    parser.add_option("-o,--output", output, "directory to write")->type_name("DIR")->required();
    parser.add_flag("--overwrite", overwrite, "replace the directory if it exists");
}

CLI::Option* addStudyOption(CLI::App& parser, std::string& study)
{
    return parser
        .add_option("--study", study, "study file (HDF5) that receives the results as well")
        ->type_name("FILE.h5");
}

CLI::Option* addChatOptions(CLI::App& parser, bool& chatTemplate, std::string& python)
{
    CLI::Option* chat = parser.add_flag(
        "--chat-template", chatTemplate,
        "each prompt as a user's turn in the model's chat template, rendered\nby Transformers "
        "(--python)");
    parser.add_option("--python", python, "Python interpreter with Transformers")
        ->type_name("FILE")
        ->default_str("MLA_PYTHON, else what installer/setup.sh --python made");
    return chat;
}

CLI::Validator atLeast(int least)
{
    return CLI::Validator(
        [least](const std::string& text) {
            const bool negative = !text.empty() && text.front() == '-';
            const std::optional<int> value =
                negative ? std::optional(-1) : wholeNumber(text.data(), text.data() + text.size());
            if (value && *value >= least)
                return std::string();
            return "'" + text + "' must be a whole number, at least " + std::to_string(least);
        },
        "");
}

CLI::Validator notNegative()
{
    return CLI::Validator(
        [](const std::string& text) {
            double value = 0;
            const auto [stopped, problem] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = problem == std::errc() && stopped == text.data() + text.size();
            if (whole && std::isfinite(value) && value >= 0)
                return std::string();
            return "'" + text + "' must be a number, at least 0";
        },
        "");
}

Result<std::vector<int>> parseIds(const std::string& text, const std::string& option)
{
    std::vector<int> ids;
    const std::string separators = ", \t\n";
    for (std::size_t begin = text.find_first_not_of(separators); begin != std::string::npos;) {
        const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
        const std::optional<int> id = wholeNumber(text.data() + begin, text.data() + end);
        if (!id)
            return usageError(option + ": '" + text.substr(begin, end - begin) + "' is no token id",
                              "ids are whole numbers joined by commas: 1,2,3");
        ids.push_back(*id);
        begin = text.find_first_not_of(separators, end);
    }
    return ids;
}

Result<LayerRange> parseLayers(const std::string& text)
{
    const std::size_t dash = text.find('-');
    const std::string last = dash == std::string::npos ? text : text.substr(dash + 1);
    const std::string first = text.substr(0, dash);
    const auto a = wholeNumber(first.data(), first.data() + first.size());
    const auto b = wholeNumber(last.data(), last.data() + last.size());
    if (!a || !b || *b < *a)
        return usageError("--layers must be A-B with 0 <= A <= B (0-based, inclusive), got '" +
                          text + "'");
    return LayerRange{*a, *b};
}

std::optional<std::filesystem::path> optionalPath(const std::string& text)
{
    if (text.empty())
        return std::nullopt;
    return std::filesystem::path(text);
}

HelpFormatter::HelpFormatter()
{
    constexpr std::size_t names = 34;
    column_width(names);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const
{
    std::string line = "Usage: " + name;
    if (!app->get_subcommands({}).empty())
        return line + " COMMAND [options]\n";
    for (const CLI::Option* option : app->get_options()) {
        if (option->get_positional())
            line += " " + option->get_name(true, false);
        else if (option->get_required())
            line += " " +
                    (option->get_snames().empty() ? option->get_name()
                                                  : "-" + option->get_snames().front()) +
                    " " + option->get_type_name();
    }
    return line + " [options]\n";
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const
{
    if (option->get_type_size() == 0 || option->get_positional())
        return {};
    return " " + option->get_type_name();
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const
{
    std::string text = option->get_description();
    if (option->get_required() && !option->get_positional())
        text += " (required)";
    else if (!option->get_default_str().empty())
        text += " (default: " + option->get_default_str() + ")";
    return text;
}

} // namespace mla::cli
