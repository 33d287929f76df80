// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/python_backend.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace mla
{

namespace
{

using nlohmann::json;
using namespace std::chrono_literals;

constexpr auto loading = 30min;   // vLLM compiles kernels at its first start
constexpr auto answering = 30min; // one prompt on a slow machine

json openRequest(const BackendSettings& settings)
{
    const SamplingRule& rule = settings.rule;
    // "auto" and an index are this program's; the scripts want PyTorch's names.
    const std::string device = settings.compute.device == "auto" ? "cpu" : settings.compute.device;
    return {{"target", settings.target.string()},
            {"draft", settings.draft.string()},
            {"plain", settings.draft.empty()},
            {"k", settings.k},
            {"max_new_tokens", settings.maxNewTokens},
            {"min_new_tokens", settings.minNewTokens},
            {"max_model_len", settings.contextTokens},
            {"eos", settings.eosIds},
            {"suppress", settings.suppressed},
            {"temperature", rule.temperature},
            {"top_k", rule.topK},
            {"top_p", rule.topP},
            {"seed", settings.compute.seed},
            {"device", device},
            {"threads", settings.compute.threads},
            {"dtype", device == "cpu" ? "float32" : "bfloat16"}};
}

/// The answer of another program is checked like any other input.
Result<BackendText> textFrom(const json& answer, int maxNewTokens, const std::string& name)
{
    const auto wrong = [&](const std::string& what) {
        return computeFailed("the " + name + " backend answered " + what, {},
                             answer.dump().substr(0, 300));
    };
    BackendText text;
    try {
        text.ids = answer.at("ids").get<std::vector<int>>();
        text.seconds = answer.at("seconds").get<double>();
        text.own = {answer.at("own").at("drafted").get<std::int64_t>(),
                    answer.at("own").at("accepted").get<std::int64_t>()};
        if (answer.contains("draft_seconds")) {
            text.draftSeconds = answer.at("draft_seconds").get<double>();
            text.verifySeconds = answer.at("verify_seconds").get<double>();
        }
        for (const json& step : answer.at("steps"))
            text.begun.push_back({step.at(0).get<int>(), step.at(1).get<int>()});
    } catch (const json::exception&) {
        return wrong("without ids, steps, own counts or seconds");
    }
    if (text.ids.empty() || text.ids.size() > static_cast<std::size_t>(maxNewTokens))
        return wrong(std::to_string(text.ids.size()) + " tokens, 1 to " +
                     std::to_string(maxNewTokens) + " were asked for");
    int next = 0;
    for (const StepStart& step : text.begun) {
        if (step.position < next || step.accepted < 0)
            return wrong("steps out of order");
        next = step.position + 1;
    }
    return text;
}

} // namespace

const std::vector<std::string>& PythonBackend::names()
{
    static const std::vector<std::string> all = {"hf", "vllm"};
    return all;
}

Result<PythonBackend> PythonBackend::open(JobContext& job, const std::string& name,
                                          const BackendSettings& settings)
{
    if (std::ranges::find(names(), name) == names().end())
        return usageError("--backend " + name + ": known are native, hf, vllm");
    MLA_TRY(python, findPython(settings.compute.python));
    MLA_TRY(harness, PythonHarness::start(python, name + "_backend.py"));
    PythonBackend backend(std::move(harness), name, settings.maxNewTokens);
    MLA_TRY(opened, backend.m_harness.ask(job, {{"open", openRequest(settings)}}, loading));
    backend.m_software = opened.value("software", std::string());
    backend.m_device = opened.value("device", std::string());
    return backend;
}

Result<BackendText> PythonBackend::speculate(JobContext& job, const std::vector<int>& prompt,
                                             int index)
{
    MLA_TRY(answer, m_harness.ask(job, {{"prompt", prompt}, {"index", index}}, answering));
    return textFrom(answer, m_maxNewTokens, m_name);
}

} // namespace mla
