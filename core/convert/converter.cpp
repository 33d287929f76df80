// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/converter.h"

#include <array>

#include "core/convert/conversion_limits.h"

namespace mla
{
namespace
{

struct Entry {
    const char* name;
    std::unique_ptr<Converter> (*make)(const ConvertSettings&);
};
constexpr std::array<Entry, 2> kRegistry = {{
    {"transmla", makeTransMla},
    {"mha2mla", makeMha2Mla},
}};

} // namespace

torch::Tensor LayerSample::rows() const
{
    const torch::Tensor flat = x.reshape({-1, x.size(-1)});
    return flat.index({mask.reshape({-1}).to(x.device())}).to(torch::kCPU, torch::kFloat64);
}

Status Converter::check(const ModelConfig& config) const
{
    return checkConversion(config, m_settings);
}

int Converter::fullRank(const ModelConfig& config) const
{
    return conversionLimits(config, m_settings).largestRank;
}

std::vector<std::string> converterNames()
{
    std::vector<std::string> names;
    for (const Entry& entry : kRegistry)
        names.emplace_back(entry.name);
    return names;
}

Result<std::unique_ptr<Converter>> makeConverter(const ConvertSettings& settings)
{
    for (const Entry& entry : kRegistry)
        if (settings.converter == entry.name)
            return entry.make(settings);
    std::string known;
    for (const std::string& name : converterNames())
        known += (known.empty() ? "" : ", ") + name;
    return usageError("--converter " + settings.converter + ": expected one of " + known);
}

} // namespace mla
