// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/step_costs.h"

#include <algorithm>

#include "core/base/elapsed.h"
#include "core/model/sampling.h"

namespace mla
{

namespace
{

constexpr int passes = 3;

} // namespace

Result<std::vector<double>> passSeconds(const Decoder& model, const std::vector<int>& prompt,
                                        int most)
{
    const auto length = static_cast<std::int64_t>(prompt.size());
    MLA_CHECK(checkIds(model.config(), prompt, length + most));
    const torch::NoGradGuard noGrad;
    KvCache cache = model.makeCache(1, length + most);
    (void)model.stepLast(idTensor(prompt, model.device()), cache);
    const auto pass = [&](int tokens) {
        const torch::Tensor ids = idTensor(
            std::vector<int>(static_cast<std::size_t>(tokens), prompt.back()), model.device());
        const SteadyClock::time_point begun = SteadyClock::now();
        // Reading a value waits for the device.
        (void)model.step(ids, cache)[0][0][0].item<float>();
        const double taken = secondsSince(begun);
        cache.rollback(length);
        return taken;
    };
    (void)pass(most); // pays for cold memory
    std::vector<double> costs;
    for (int tokens = 1; tokens <= most; ++tokens) {
        std::vector<double> seconds;
        for (int i = 0; i < passes; ++i)
            seconds.push_back(pass(tokens));
        std::ranges::nth_element(seconds, seconds.begin() + passes / 2);
        costs.push_back(seconds[passes / 2]);
    }
    return costs;
}

} // namespace mla
