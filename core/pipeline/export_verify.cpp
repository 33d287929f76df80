// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/export_verify.h"

#include <stdlib.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/backends/python_environment.h"
#include "core/backends/python_packages.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/run_support.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::size_t kPrompts = 4;
constexpr int kPromptTokens = 24;
constexpr int kNewTokens = 24;
constexpr auto kLoading = 30min; // vLLM compiles kernels at its first start
constexpr auto kAnswering = 10min;

/// Removed with everything in it.
class ScratchFolder
{
public:
    static Result<ScratchFolder> create()
    {
        std::string name = (fs::temp_directory_path() / "mla-draft-XXXXXX").string();
        if (!::mkdtemp(name.data()))
            return computeFailed("cannot make a temporary folder", name);
        return ScratchFolder(name);
    }
    ScratchFolder(ScratchFolder&& other) noexcept : m_path(std::move(other.m_path))
    {
        other.m_path.clear();
    }
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder()
    {
        std::error_code ignored;
        if (!m_path.empty())
            fs::remove_all(m_path, ignored);
    }
    [[nodiscard]] const fs::path& path() const { return m_path; }

private:
    explicit ScratchFolder(fs::path path) : m_path(std::move(path)) {}
    fs::path m_path;
};

/// A prompt, our greedy continuation of it, and the logits of both together.
struct Case {
    std::vector<int> prompt, greedy;
    std::vector<float> margins; ///< top-2 margin behind each greedy token
    torch::Tensor ids;          ///< [T]
    torch::Tensor logits;       ///< [T, V] fp32
};

std::vector<std::vector<int>> promptsFrom(const TokenWindows& windows)
{
    std::vector<std::vector<int>> prompts;
    for (const std::vector<int>& window : windows) {
        if (prompts.size() == kPrompts)
            break;
        const auto length = std::min<std::ptrdiff_t>(kPromptTokens, std::ssize(window));
        if (length > 0)
            prompts.emplace_back(window.begin(), window.begin() + length);
    }
    return prompts;
}

Result<std::vector<Case>> casesOf(JobContext& job, const Decoder& model,
                                  const TokenWindows& windows)
{
    const torch::NoGradGuard noGrad;
    std::vector<Case> cases;
    for (std::vector<int>& prompt : promptsFrom(windows)) {
        MLA_TRY(text, continuePrompt(job, model, prompt, kNewTokens, StopRule{}));
        std::vector<int> all = prompt;
        all.insert(all.end(), text.ids.begin(), text.ids.end());
        const torch::Tensor ids = idTensor(all, model.device());
        cases.push_back({std::move(prompt), std::move(text.ids), std::move(text.margins),
                         ids[0].cpu(), model.logits(ids)[0].cpu().contiguous()});
    }
    return cases;
}

double spreadOf(const std::vector<Case>& cases)
{
    double spread = 0;
    for (const Case& each : cases)
        spread = std::max(spread, each.logits.to(torch::kFloat64).std().item<double>());
    return spread > 0 ? spread : 1;
}

/// Counts a stack's greedy text. A first difference where our two best logits are nearer than
/// `tie` is rounding; the texts are not compared behind it.
void compareText(const Case& expected, const std::vector<int>& ids, double tie,
                 ExportCheckRecord& check)
{
    const std::size_t length = std::min(ids.size(), expected.greedy.size());
    std::size_t equal = 0;
    while (equal < length && ids[equal] == expected.greedy[equal])
        ++equal;
    check.greedyTokens += static_cast<int>(expected.greedy.size());
    check.equalTokens += static_cast<int>(equal);
    if (equal == expected.greedy.size())
        return;
    const double margin = expected.margins[equal];
    const bool nearTie = equal < length && margin <= tie;
    check.passed = check.passed && nearTie;
    check.remark += (check.remark.empty() ? "" : "; ") + std::string("prompt ") +
                    std::to_string(check.prompts) + " differs from token " + std::to_string(equal) +
                    " on, where the two best logits are " + std::to_string(margin) + " apart" +
                    (nearTie ? " (a near-tie)" : "");
}

Status judged(const ExportCheckRecord& check)
{
    if (check.passed)
        return {};
    return computeFailed(
        "the exported draft is not the same model in " + check.stack + " as " + check.reference +
            ": logits differ by " + std::to_string(check.logitDifference) + " of their spread, " +
            std::to_string(check.bound) + " is allowed; " + std::to_string(check.equalTokens) +
            " of " + std::to_string(check.greedyTokens) + " greedy tokens are equal" +
            (check.remark.empty() ? "" : "; " + check.remark),
        {}, "nothing was written");
}

/// The exported weights in our own engine, beside the draft. Texts need be equal only if the
/// weights are.
Result<ExportCheckRecord> ownCheck(JobContext& job, const std::vector<Case>& draft,
                                   const Decoder& written, double bound)
{
    const torch::NoGradGuard noGrad;
    const double spread = spreadOf(draft);
    ExportCheckRecord check{"mla-draft", softwareText(), {}, "the draft", 0, bound};
    double largest = 0;
    check.passed = true;
    for (const Case& each : draft) {
        const torch::Tensor logits =
            written.logits(each.ids.unsqueeze(0).to(written.device()))[0].cpu();
        largest = std::max(largest, (logits - each.logits).abs().max().item<double>());
        MLA_TRY(text, continuePrompt(job, written, each.prompt, kNewTokens, StopRule{}));
        ++check.prompts;
        compareText(each, text.ids, 2 * bound * spread, check);
    }
    check.logitDifference = largest / spread;
    check.passed = check.logitDifference <= bound && (check.passed || bound > kExactBound);
    MLA_CHECK(judged(check));
    return check;
}

Status writeReference(const std::vector<Case>& cases, const fs::path& path)
{
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        views.push_back(viewOf("ids." + std::to_string(i), cases[i].ids));
        views.push_back(viewOf("logits." + std::to_string(i), cases[i].logits));
    }
    return writeSafetensors(path, views);
}

/// What a Python stack is asked to do.
struct Stack {
    std::string name, package; ///< package: what Python must have besides torch
    fs::path folder, reference, scratch;
    bool plugin = false, customCode = true;
};

Result<PythonHarness> openStack(JobContext& job, const fs::path& python, const Stack& stack,
                                const ComputeSettings& compute, ExportCheckRecord& check)
{
    std::map<std::string, std::string> environment = {
        {"HF_MODULES_CACHE", (stack.scratch / "modules").string()}};
    if (!stack.plugin) // what is checked is that none is needed
        environment["VLLM_PLUGINS"] = "";
    MLA_TRY(harness, PythonHarness::start(python, "verify_export.py", std::move(environment)));
    const json settings = {{"stack", stack.name},
                           {"folder", stack.folder.string()},
                           {"reference", stack.reference.string()},
                           {"plugin", stack.plugin},
                           {"custom_code", stack.customCode},
                           {"device", compute.device == "cuda" ? "cuda" : "cpu"},
                           {"threads", compute.threads},
                           {"max_model_len", 2 * (kPromptTokens + kNewTokens)}};
    MLA_TRY(opened, harness.ask(job, {{"open", settings}}, kLoading));
    check.software = opened.value("software", std::string());
    check.modelClass = opened.value("class", std::string());
    return std::move(harness);
}

Result<ExportCheckRecord> stackCheck(JobContext& job, const fs::path& python, const Stack& stack,
                                     const std::vector<Case>& cases, const ComputeSettings& compute)
{
    const double spread = spreadOf(cases);
    ExportCheckRecord check{stack.name, {}, {}, "the exported weights", 0, kExactBound};
    MLA_TRY(harness, openStack(job, python, stack, compute, check));
    check.passed = true;
    double largest = 0;
    for (const Case& each : cases) {
        const json request = {
            {"case", check.prompts}, {"prompt", each.prompt}, {"new_tokens", each.greedy.size()}};
        MLA_TRY(answer, harness.ask(job, request, kAnswering));
        std::vector<int> ids;
        try {
            largest = std::max(largest, answer.at("difference").get<double>());
            ids = answer.at("greedy").get<std::vector<int>>();
        } catch (const json::exception&) {
            return computeFailed(stack.name + " answered without difference or greedy tokens", {},
                                 answer.dump().substr(0, 300));
        }
        ++check.prompts;
        compareText(each, ids, 2 * kExactBound * spread, check);
        job.emitEvent(StageProgress{"verify", static_cast<double>(check.prompts),
                                    static_cast<int>(cases.size())});
    }
    check.logitDifference = largest / spread;
    check.passed = check.passed && check.logitDifference <= kExactBound;
    MLA_CHECK(judged(check));
    MLA_CHECK(harness.finish(job));
    return check;
}

ExportCheckRecord untried(const Stack& stack, std::string why)
{
    ExportCheckRecord check{stack.name, {}, {}, "the exported weights", 0, kExactBound};
    check.remark = "not tried: " + std::move(why);
    return check;
}

/// Why vLLM cannot run a draft in this layout here; empty if it can.
std::string vllmHindrance(const ExportVerification& request)
{
    const MlaConfig& mla = *request.draft.config().mla;
    const int width = mla.qkNopeHeadDim + mla.qkRopeHeadDim;
    if (request.layout == "huggingface" && request.compute.device != "cuda" &&
        !vllmCpuTakesHead(width))
        return "its attention for CPUs takes no heads of width " + std::to_string(width);
    return {};
}

Result<std::vector<ExportCheckRecord>>
pythonChecks(JobContext& job, const ExportVerification& request, const std::vector<Case>& cases)
{
    MLA_TRY(scratch, ScratchFolder::create());
    const bool plugin = request.layout == "vllm-plugin";
    const bool stock = request.layout == "deepseek";
    std::vector<Stack> stacks;
    stacks.push_back({"transformers", "transformers", fs::absolute(request.folder),
                      scratch.path() / "reference.safetensors", scratch.path(), false, !stock});
    stacks.push_back(stacks.front());
    stacks.back().name = stacks.back().package = "vllm";
    stacks.back().plugin = plugin;
    stacks.back().customCode = !plugin && !stock;
    MLA_CHECK(writeReference(cases, stacks.front().reference));

    std::vector<ExportCheckRecord> checks;
    const Result<fs::path> python = findPython(request.compute.python);
    for (const Stack& stack : stacks) {
        if (!python) {
            checks.push_back(untried(stack, python.error().message));
            continue;
        }
        MLA_TRY(missing, missingPackages(job, *python, {stack.package, "torch", "safetensors"}));
        std::string why =
            missing.empty() ? std::string() : python->string() + " has no " + missing.front();
        if (why.empty() && stack.name == "vllm")
            why = vllmHindrance(request);
        if (!why.empty()) {
            checks.push_back(untried(stack, why));
            continue;
        }
        job.emitEvent(
            StageStarted{"verify", static_cast<int>(cases.size()), "prompts in " + stack.name, {}});
        MLA_TRY(check, stackCheck(job, *python, stack, cases, request.compute));
        checks.push_back(std::move(check));
    }
    return checks;
}

} // namespace

Result<std::vector<ExportCheckRecord>> verifyExport(JobContext& job,
                                                    const ExportVerification& request)
{
    MLA_TRY(device, resolveDevice(request.compute.device));
    std::vector<ExportCheckRecord> checks;
    std::vector<Case> cases;
    {
        MLA_TRY(checkpoint, Checkpoint::open(request.folder));
        MLA_TRY(draft, Decoder::load(request.draft, device));
        MLA_TRY(written, Decoder::load(checkpoint, device));
        MLA_TRY(expected, casesOf(job, draft, request.windows));
        MLA_TRY(own, ownCheck(job, expected, written, request.ownBound));
        checks.push_back(std::move(own));
        MLA_TRY(reference, casesOf(job, written, request.windows));
        cases = std::move(reference);
    } // the stacks need the memory
    MLA_TRY(others, pythonChecks(job, request, cases));
    checks.insert(checks.end(), others.begin(), others.end());
    return checks;
}

} // namespace mla
