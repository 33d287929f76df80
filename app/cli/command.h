// SPDX-License-Identifier: GPL-3.0-or-later
// One command of mla-draft: it declares its options, runs, and hands back what main prints.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/pipeline/settings.h"

namespace mla::cli
{

/// What every command takes.
struct CommonOptions {
    ComputeSettings compute;
    bool json = false, quiet = false;
};

/// The result in both forms; commands print nothing themselves.
struct Output {
    nlohmann::json json;               ///< the contract's object
    std::string text;                  ///< for people
    std::vector<std::string> warnings; ///< go to stderr, unless they were shown while running
};

class Command
{
public:
    Command() = default;
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;
    virtual ~Command() = default;

    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string summary() const = 0; ///< one line
    [[nodiscard]] virtual std::string examples() const = 0;
    virtual void declare(CLI::App& parser) = 0;
    virtual Result<Output> run(JobContext& job) = 0;
    /// False for commands without a stop point: an interrupt ends them at once.
    [[nodiscard]] virtual bool stoppable() const { return true; }

    CommonOptions common;
};

/// Every command, in the order of the help text.
std::vector<std::unique_ptr<Command>> allCommands();

std::unique_ptr<Command> makeDemo();
std::unique_ptr<Command> makeRun();
std::unique_ptr<Command> makeInspect();
std::unique_ptr<Command> makeTokenize();
std::unique_ptr<Command> makeForward();
std::unique_ptr<Command> makeGenerate();
std::unique_ptr<Command> makePerplexity();
std::unique_ptr<Command> makeSpectrum();
std::unique_ptr<Command> makeFidelity();
std::unique_ptr<Command> makeConvert();
std::unique_ptr<Command> makeRefine();
std::unique_ptr<Command> makeAccept();
std::unique_ptr<Command> makeGrid();
std::unique_ptr<Command> makeImportResults();
std::unique_ptr<Command> makeExport();
std::unique_ptr<Command> makeReport();

} // namespace mla::cli
