// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/run_support.h"

#include <nlohmann/json.hpp>
#include <torch/version.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "core/base/file.h"
#include "core/base/resources.h"
#include "core/base/sha256.h"
#include "core/model/tensors.h"
#include "core/store/study.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

std::string processorName()
{
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name"))
            return line.substr(line.find(':') + 2);
    return "unknown processor";
}

} // namespace

std::string checkpointId(const fs::path& checkpoint)
{
    return fs::absolute(checkpoint / "").lexically_normal().parent_path().filename().string();
}

std::string softwareText()
{
    return std::string("mla-draft-workbench ") + MLA_VERSION + ", LibTorch " + TORCH_VERSION +
           ", " + processorName();
}

std::string utcNow()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    gmtime_r(&now, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, size};
}

std::string deviceText(torch::Device device)
{
    return device.str();
}

std::string conversionLabel(const ConvertSettings& settings, const ModelConfig& source)
{
    const std::string rank = std::to_string(settings.kvLoraRank) + "+";
    const std::string rope = std::to_string(settings.qkRopeHeadDim);
    if (settings.converter == "transmla") {
        const int freqfold = settings.freqfold > 0
                                 ? settings.freqfold
                                 : std::max(1, source.headDim / settings.qkRopeHeadDim);
        return "transmla-" + rank + rope + "-f" + std::to_string(freqfold);
    }
    return settings.converter + "-" + rank + std::to_string(source.numKeyValueHeads) + "x" + rope +
           "-" + settings.ropeSelect + "-" + settings.svd;
}

fs::path partsRoot(const fs::path& study)
{
    return fs::path(study).replace_extension(".parts");
}

fs::path partsFolder(const std::optional<fs::path>& study, const fs::path& output,
                     const std::string& run)
{
    if (!study)
        return fs::path((fs::absolute(output / "").lexically_normal().parent_path()).string() +
                        ".parts");
    std::string name = run;
    std::replace(name.begin(), name.end(), '/', '~');
    return partsRoot(*study) / name;
}

CheckpointRecord describeCheckpoint(const Checkpoint& checkpoint, const std::string& fingerprint)
{
    CheckpointRecord record;
    record.id = checkpointId(checkpoint.directory());
    record.path = fs::absolute(checkpoint.directory()).lexically_normal().string();
    record.fingerprint = fingerprint;
    if (const auto config = readFile(checkpoint.directory() / "config.json"))
        record.configJson = config.value();
    else // a GGUF file
        record.configJson = checkpoint.configJson().dump(2);
    return record;
}

namespace
{

CalibrationSet fromRecord(const CalibrationRecord& record)
{
    const std::int64_t rows = record.sequences, length = record.length;
    return {torch::tensor(record.inputIds, torch::kInt64).view({rows, length}),
            torch::tensor(record.mask, torch::kUInt8).to(torch::kBool).view({rows, length}),
            record.source};
}

/// Everything that decides the ids.
std::string calibrationId(const std::string& fingerprint, const CalibrationSettings& settings,
                          std::uint64_t seed)
{
    const std::string key = fingerprint + "|" + settings.source + "|" + std::to_string(seed);
    return std::to_string(settings.sequences) + "x" + std::to_string(settings.length) + "-" +
           sha256Hex(key).substr(0, 12);
}

} // namespace

Result<fs::path> defaultPrompts()
{
    MLA_TRY(resources, resourceDirectory());
    return resources / "prompts" / "calibration.txt";
}

CalibrationRecord toRecord(const NamedCalibration& calibration)
{
    CalibrationRecord record;
    record.id = calibration.id;
    record.source = calibration.set.source;
    record.sequences = calibration.set.sequences();
    record.length = calibration.set.length();
    const torch::Tensor ids = calibration.set.ids.to(torch::kInt32).contiguous();
    const torch::Tensor mask = calibration.set.mask.to(torch::kUInt8).contiguous();
    record.inputIds.assign(ids.data_ptr<std::int32_t>(),
                           ids.data_ptr<std::int32_t>() + ids.numel());
    record.mask.assign(mask.data_ptr<std::uint8_t>(), mask.data_ptr<std::uint8_t>() + mask.numel());
    return record;
}

Result<NamedCalibration>
obtainCalibration(JobContext& job, const Checkpoint& checkpoint, const std::string& fingerprint,
                  const CalibrationSettings& settings, const ComputeSettings& compute,
                  const std::optional<fs::path>& study, const fs::path& stored)
{
    NamedCalibration named;
    named.id = calibrationId(fingerprint, settings, compute.seed);
    if (fs::exists(stored)) {
        MLA_TRY(set, loadCalibration(stored));
        named.set = std::move(set);
        return named;
    }
    if (study && fs::exists(*study)) {
        MLA_TRY(data, loadStudy(*study));
        for (const CalibrationRecord& record : data.calibrations)
            if (record.id == named.id) {
                named.set = fromRecord(record);
                return named;
            }
    }
    MLA_TRY(tokenizer, Tokenizer::open(checkpoint.directory()));
    MLA_TRY(prompts, defaultPrompts());
    MLA_TRY(built, buildCalibration(job, checkpoint, tokenizer, settings, prompts, compute));
    for (const std::string& warning : built.warnings)
        job.warn(warning);
    named.set = std::move(built.set);
    if (study)
        MLA_CHECK(updateStudy(*study, [&](StudyData& data) -> Status {
            data.put(toRecord(named));
            return {};
        }));
    MLA_CHECK(saveCalibration(stored, named.set));
    return named;
}

TokenWindows validWindows(const CalibrationSet& set)
{
    TokenWindows windows;
    for (int row = 0; row < set.sequences(); ++row) {
        const std::int64_t valid = set.mask[row].sum().item<std::int64_t>();
        const torch::Tensor ids = set.ids[row].narrow(0, 0, valid).contiguous();
        windows.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + valid);
    }
    return windows;
}

TokenWindows heldoutWindows(const CalibrationSet& set)
{
    const std::int64_t heldout = set.heldout(), first = set.sequences() - heldout;
    return validWindows(
        {set.ids.narrow(0, first, heldout), set.mask.narrow(0, first, heldout), set.source});
}

Result<std::map<std::string, StageRecord>>
scoreStages(JobContext& job, const Checkpoint& original, const fs::path& draft,
            const std::string& stage, const TokenWindows& windows, torch::Device device,
            int workers, const ChangeDraft& atFullRank)
{
    const int models = atFullRank ? 3 : 2;
    job.emitEvent(
        StageStarted{"perplexity", models * static_cast<int>(windows.size()), "windows", {}});
    MLA_TRY(reference, Decoder::load(original, device));
    MLA_TRY(checkpoint, Checkpoint::open(draft));
    MLA_TRY(model, Decoder::load(checkpoint, device));
    MLA_TRY(originalScore, scoreWindows(job, reference, nullptr, windows, workers));
    MLA_TRY(draftScore, scoreWindows(job, model, &reference, windows, workers));
    std::map<std::string, StageRecord> stages{
        {"original", {originalScore.perplexity, 0.0}},
        {stage, {draftScore.perplexity, draftScore.kl}},
    };
    if (atFullRank) {
        MLA_TRY(changed, atFullRank(model));
        if (changed) {
            MLA_TRY(score, scoreWindows(job, model, &reference, windows, workers));
            stages["rope_removed"] = {score.perplexity, score.kl};
        }
    }
    return stages;
}

Result<Checkpoint> openSource(const fs::path& path)
{
    MLA_TRY(checkpoint, Checkpoint::open(path));
    if (checkpoint.config().isMla())
        return badInput("is an MLA draft; a GQA checkpoint is expected here", path.string());
    return std::move(checkpoint);
}

Result<Checkpoint> openDraft(const fs::path& path)
{
    MLA_TRY(checkpoint, Checkpoint::open(path));
    if (!checkpoint.config().isMla())
        return badInput("is a GQA checkpoint; an MLA draft (the output of `convert`) is expected",
                        path.string());
    return std::move(checkpoint);
}

} // namespace mla
