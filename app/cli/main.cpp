// SPDX-License-Identifier: GPL-3.0-or-later
// mla-draft: parses the command line, runs one command, prints its result.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/print.h"
#include "app/cli/progress.h"

namespace mla::cli
{

std::vector<std::unique_ptr<Command>> allCommands()
{
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(makeDemo());
    commands.push_back(makeRun());
    commands.push_back(makeInspect());
    commands.push_back(makeTokenize());
    commands.push_back(makeForward());
    commands.push_back(makeGenerate());
    commands.push_back(makePerplexity());
    commands.push_back(makeSpectrum());
    commands.push_back(makeFidelity());
    commands.push_back(makeConvert());
    commands.push_back(makeRefine());
    commands.push_back(makeAccept());
    commands.push_back(makeGrid());
    commands.push_back(makeImportResults());
    commands.push_back(makeExport());
    commands.push_back(makeReport());
    return commands;
}

namespace
{

void declareProgram(CLI::App& app, const std::vector<std::unique_ptr<Command>>& commands)
{
    app.name("mla-draft");
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_help_flag("-h,--help", "this help");
    app.set_version_flag("--version", "mla-draft " MLA_VERSION);
    app.footer(
        "mla-draft COMMAND --help explains a command. Results go to standard output (--json for\n"
        "machines), progress to standard error. Exit codes: 0 done, 2 usage, 3 bad input,\n"
        "4 computing failed, 130 cancelled.");
    for (const auto& command : commands) {
        CLI::App* parser = app.add_subcommand(command->name(), command->summary());
        parser->group("Commands");
        command->declare(*parser);
        addCommonOptions(*parser, command->common);
        parser->footer(command->examples());
    }
}

/// CLI11 would complain about the missing command, not about the wrong one.
Status checkCommandName(const CLI::App& app, int argc, char** argv)
{
    std::string names;
    for (const CLI::App* parser : app.get_subcommands({}))
        names += (names.empty() ? "" : ", ") + parser->get_name();
    if (argc < 2)
        return usageError("a command is missing: " + names, "mla-draft --help");
    const std::string first = argv[1];
    const auto known =
        app.get_subcommands([&](const CLI::App* parser) { return parser->get_name() == first; });
    if (first.empty() || (first.front() != '-' && known.empty()))
        return usageError("unknown command '" + first + "'", "commands: " + names);
    return {};
}

Error parseError(const CLI::App& app, const CLI::ParseError& problem)
{
    const auto chosen = app.get_subcommands();
    const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
    return usageError(problem.what(), "mla-draft" + name + " --help");
}

/// Runs `work`; what only exceptions can say (no memory, a fault of a library) becomes an Error.
template <typename Work>
Result<Output> guarded(Work work)
{
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return computeFailed("out of memory", {}, "fewer or shorter sequences need less");
    } catch (const std::exception& problem) {
        return computeFailed(problem.what());
    }
}

int runCommand(Command& command)
{
    ProgressPrinter progress(command.common.quiet);
    const bool stoppable = command.stoppable(), json = command.common.json;
    InterruptWatcher interrupts([stoppable, json] {
        if (!stoppable)
            std::_Exit(printError(cancelled(), json));
        std::fputs("\nstopping; a second interrupt ends the program at once\n", stderr);
    });
    JobContext job(interrupts.token(), [&](const JobEvent& event) { progress.handle(event); });
    const Result<Output> result = guarded([&] { return command.run(job); });
    progress.finish(result.ok());
    if (!result)
        return printError(result.error(), json);
    for (const std::string& warning : result->warnings)
        progress.warn(warning);
    return printOutput(*result, json);
}

} // namespace
} // namespace mla::cli

int main(int argc, char** argv)
{
    using namespace mla;
    using namespace mla::cli;
    // The parse may fail before it has reached --json.
    const bool json =
        std::any_of(argv, argv + argc, [](const std::string& text) { return text == "--json"; });
    const std::vector<std::unique_ptr<Command>> commands = allCommands();
    CLI::App app(
        "Converts a GQA draft model to MLA, repairs it, and measures how much of its acceptance\n"
        "by the target model has come back. Start with: mla-draft demo");
    declareProgram(app, commands);
    if (const Status known = checkCommandName(app, argc, argv); !known)
        return printError(known.error(), json);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
        if (problem.get_exit_code() == 0)
            return app.exit(problem); // --help, --version
        return printError(parseError(app, problem), json);
    }
    const auto chosen = app.get_subcommands();
    if (chosen.empty())
        return printError(usageError("a command is missing", "mla-draft --help"), json);
    const auto command = std::find_if(commands.begin(), commands.end(), [&](const auto& candidate) {
        return candidate->name() == chosen.front()->get_name();
    });
    return runCommand(**command);
}
