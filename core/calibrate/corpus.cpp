// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/calibrate/corpus.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include "core/base/file.h"
#include "core/calibrate/self_generation.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
constexpr int kFewestSequences = 8; // one held-out sequence needs seven to train on
constexpr std::uint64_t kPrefixStream = 0x9fe1;

std::vector<std::string> splitLines(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line.back() == '\r')
            line.pop_back();
        if (line.find_first_not_of(" \t") != std::string::npos)
            lines.push_back(line);
    }
    return lines;
}

std::vector<fs::path> splitPaths(const std::string& source)
{
    std::vector<fs::path> paths;
    std::istringstream in(source);
    for (std::string part; std::getline(in, part, ',');)
        if (!part.empty())
            paths.emplace_back(part);
    return paths;
}

bool isJsonLines(const fs::path& path)
{
    return path.extension() == ".jsonl" || path.extension() == ".json";
}

using Rows = std::vector<std::vector<int>>;

/// Windows of `length` tokens spread evenly over `ids`, at most `count`, disjoint.
Rows evenWindows(const std::vector<int>& ids, int count, int length)
{
    const auto available = static_cast<int>(ids.size()) / length;
    const int windows = std::min(count, available);
    Rows rows;
    for (int i = 0; i < windows; ++i) {
        const std::size_t slot = static_cast<std::size_t>(i) * static_cast<std::size_t>(available) /
                                 static_cast<std::size_t>(windows);
        const auto begin =
            ids.begin() + static_cast<std::ptrdiff_t>(slot * static_cast<std::size_t>(length));
        rows.emplace_back(begin, begin + length);
    }
    return rows;
}

Result<Rows> rowsOfFile(const fs::path& path, const Tokenizer& tokenizer, int count, int length)
{
    if (!isJsonLines(path)) {
        MLA_TRY(text, readFile(path));
        return evenWindows(tokenizer.encode(text), count, length);
    }
    Rows rows;
    MLA_TRY(lines, readJsonLines(path));
    for (const std::string& line : lines) {
        if (static_cast<int>(rows.size()) == count)
            break;
        MLA_TRY(text, recordText(line, path.string()));
        std::vector<int> ids = tokenizer.encode(text);
        if (ids.size() > static_cast<std::size_t>(length))
            ids.resize(static_cast<std::size_t>(length));
        if (ids.size() >= 2)
            rows.push_back(std::move(ids));
    }
    return rows;
}

CalibrationSet setOfRows(const Rows& rows, int length, std::string source)
{
    const auto count = static_cast<std::int64_t>(rows.size());
    CalibrationSet set{torch::zeros({count, length}, torch::kInt64),
                       torch::zeros({count, length}, torch::kBool), std::move(source)};
    for (std::int64_t i = 0; i < count; ++i) {
        const std::vector<int>& row = rows[static_cast<std::size_t>(i)];
        const auto size = static_cast<std::int64_t>(row.size());
        set.ids[i].narrow(0, 0, size).copy_(torch::tensor(row, torch::kInt64));
        set.mask[i].narrow(0, 0, size).fill_(true);
    }
    return set;
}

Result<Rows> selfPrefixes(const Checkpoint& checkpoint, const Tokenizer& tokenizer,
                          const fs::path& prompts, const CalibrationSettings& settings,
                          std::uint64_t seed)
{
    MLA_TRY(text, readFile(prompts));
    const std::vector<std::string> lines = splitLines(text);
    if (lines.empty())
        return badInput("no prompts: expected one a line", prompts.string());
    const std::optional<int> bos = checkpoint.config().bosTokenId;
    torch::Generator generator = seededGenerator(seed, kPrefixStream);
    const auto draw = [&](std::int64_t bound) {
        return torch::randint(bound, {1}, generator, torch::kInt64).item<std::int64_t>();
    };
    Rows prefixes;
    for (int i = 0; i < settings.sequences; ++i) {
        if (bos && i % 4 == 0) { // a quarter, spread evenly so that held-out ones have their share
            prefixes.push_back({*bos});
            continue;
        }
        const auto line = static_cast<std::size_t>(draw(static_cast<std::int64_t>(lines.size())));
        std::vector<int> ids = tokenizer.encode(lines[line]);
        const auto longest = static_cast<std::size_t>(
            std::min<std::int64_t>(8 + draw(41), std::max(1, settings.length / 2)));
        if (ids.size() > longest)
            ids.resize(longest);
        if (ids.empty())
            return badInput("line " + std::to_string(line + 1) + " encodes to no token",
                            prompts.string());
        prefixes.push_back(std::move(ids));
    }
    return prefixes;
}

Result<CalibrationSet> selfGenerated(JobContext& job, const Checkpoint& checkpoint,
                                     const Tokenizer& tokenizer,
                                     const CalibrationSettings& settings, const fs::path& prompts,
                                     const ComputeSettings& compute)
{
    MLA_TRY(prefixes, selfPrefixes(checkpoint, tokenizer, prompts, settings, compute.seed));
    MLA_TRY(device, resolveDevice(compute.device));
    MLA_TRY(model, Decoder::load(checkpoint, device));
    MLA_TRY(ids, sampleSequences(job, model, prefixes, settings.length, compute.seed,
                                 workerCount(compute, device)));
    return CalibrationSet{ids, torch::ones_like(ids, torch::kBool), settings.source};
}

} // namespace

Result<std::vector<std::string>> readJsonLines(const fs::path& path)
{
    MLA_TRY(text, readFile(path));
    std::vector<std::string> lines = splitLines(text);
    if (lines.empty())
        return badInput("no records: expected one JSON object a line", path.string());
    return lines;
}

Result<std::string> recordText(const std::string& line, const std::string& origin)
{
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
        return badInput("a line is not a JSON object", origin);
    for (const char* key : {"text", "prompt"})
        if (const auto it = json.find(key); it != json.end() && it->is_string())
            return it->get<std::string>();
    if (const auto it = json.find("turns");
        it != json.end() && it->is_array() && !it->empty() && it->front().is_string())
        return it->front().get<std::string>();
    return badInput("a record has none of the keys \"text\", \"prompt\" (strings) or \"turns\" "
                    "(a list of strings)",
                    origin);
}

Result<CalibrationResult> buildCalibration(JobContext& job, const Checkpoint& checkpoint,
                                           const Tokenizer& tokenizer,
                                           const CalibrationSettings& settings,
                                           const fs::path& bundledPrompts,
                                           const ComputeSettings& compute)
{
    if (settings.length > checkpoint.config().contextLength())
        return usageError("--length " + std::to_string(settings.length) +
                          " exceeds the model's context of " +
                          std::to_string(checkpoint.config().contextLength()));
    job.emitEvent(StageStarted{"calibrate", settings.sequences, "sequences", {}});
    if (settings.source == "self" || settings.source.starts_with("self:")) {
        const fs::path prompts =
            settings.source == "self" ? bundledPrompts : fs::path(settings.source.substr(5));
        MLA_TRY(set, selfGenerated(job, checkpoint, tokenizer, settings, prompts, compute));
        return CalibrationResult{std::move(set), {}};
    }
    Rows rows;
    const std::vector<fs::path> paths = splitPaths(settings.source);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        // Each file gives its share of what is still missing.
        const int missing = settings.sequences - static_cast<int>(rows.size());
        const int share =
            (missing + static_cast<int>(paths.size() - i) - 1) / static_cast<int>(paths.size() - i);
        MLA_TRY(more, rowsOfFile(paths[i], tokenizer, share, settings.length));
        rows.insert(rows.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
    }
    const int got = static_cast<int>(rows.size());
    if (got < kFewestSequences)
        return badInput("only " + std::to_string(got) + " sequences of " +
                            std::to_string(settings.length) + " tokens: at least " +
                            std::to_string(kFewestSequences) + " are needed",
                        "calibration " + settings.source, "give more text, or a smaller --length");
    CalibrationResult result;
    if (got < settings.sequences)
        result.warnings.push_back("calibration: " + settings.source + " holds " +
                                  std::to_string(got) + " sequences, " +
                                  std::to_string(settings.sequences) + " were asked for");
    result.set = setOfRows(rows, settings.length, settings.source);
    return result;
}

Status saveCalibration(const fs::path& path, const CalibrationSet& set)
{
    const torch::Tensor ids = set.ids.to(torch::kInt32).contiguous();
    const torch::Tensor mask = set.mask.to(torch::kUInt8).contiguous();
    const std::vector<TensorView> views = {viewOf("input_ids", ids), viewOf("mask", mask)};
    return writeSafetensors(path, views, {{"format", "pt"}, {"source", set.source}});
}

Result<CalibrationSet> loadCalibration(const fs::path& path)
{
    MLA_TRY(file, SafetensorsFile::open(path));
    CalibrationSet set;
    MLA_TRY(ids, loadTensor(file, "input_ids", torch::kInt64));
    MLA_TRY(mask, loadTensor(file, "mask", torch::kBool));
    if (ids.dim() != 2 || ids.sizes() != mask.sizes() || ids.size(0) < 2)
        return badInput("input_ids and mask must have one shape [N, T], N >= 2", path.string());
    const auto source = file.metadata().find("source");
    return CalibrationSet{ids, mask, source == file.metadata().end() ? "" : source->second};
}

} // namespace mla
