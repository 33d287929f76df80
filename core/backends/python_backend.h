// SPDX-License-Identifier: GPL-3.0-or-later
// Speculative decoding in the stacks that people serve with: Transformers' assisted generation
// (`hf`) and vLLM (`vllm`), each in a Python process of its own (resources/python/*_backend.py,
// design section 14). No torch here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/backends/python_environment.h"
#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/evaluate/acceptance.h"

namespace mla
{

struct BackendSettings {
    std::filesystem::path target, draft; ///< no draft: plain decoding by the target
    int k = 4, maxNewTokens = 64, minNewTokens = 0;
    int contextTokens = 0; ///< longest prompt + maxNewTokens: what the engine has to hold
    std::vector<int> eosIds;
    std::vector<int> suppressed; ///< ids that neither model may choose (padding)
    SamplingRule rule;
    ComputeSettings compute;
};

/// What a backend made of one prompt.
struct BackendText {
    std::vector<int> ids;         ///< the continuation, EOS included
    std::vector<StepStart> begun; ///< its verification steps
    double seconds = 0;
    std::optional<double> draftSeconds, verifySeconds; ///< parts of it, where the library tells
    /// What the library counts by itself: vLLM's includes tokens past the end of a text, that of
    /// Transformers may lack the last one. Shown beside ours, never mixed with it.
    struct OwnCounts {
        std::int64_t drafted = 0, accepted = 0;
    };
    OwnCounts own;
};

class PythonBackend
{
public:
    /// The names that open() knows: "hf", "vllm".
    static const std::vector<std::string>& names();

    /// Starts the process and loads both models. Usage errors: an unknown name, no Python
    /// environment, a package that is missing.
    static Result<PythonBackend> open(JobContext& job, const std::string& name,
                                      const BackendSettings& settings);

    /// Continues `prompt`; `index` enters the seed of a sampled text.
    Result<BackendText> speculate(JobContext& job, const std::vector<int>& prompt, int index);
    [[nodiscard]] const std::string& software() const { return m_software; }
    [[nodiscard]] const std::string& device() const { return m_device; }
    Status finish(JobContext& job) { return m_harness.finish(job); }

private:
    PythonBackend(PythonHarness harness, std::string name, int maxNewTokens)
        : m_harness(std::move(harness)), m_name(std::move(name)), m_maxNewTokens(maxNewTokens)
    {
    }
    PythonHarness m_harness;
    std::string m_name, m_software, m_device;
    int m_maxNewTokens;
};

} // namespace mla
