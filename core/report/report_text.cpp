// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/report_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

namespace mla
{

namespace
{

constexpr auto noNumber = "–";
constexpr double widestFixed = 1e15; // beyond it decimals mean nothing

std::string print(double value, std::chars_format format, int precision)
{
    std::array<char, 64> buffer = {};
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision).ptr;
    return {buffer.data(), end};
}

bool isZeroText(const std::string& text)
{
    return text.find_first_of("123456789") == text.npos;
}

void flatten(const nlohmann::json& json, const std::string& prefix,
             std::vector<std::pair<std::string, std::string>>& settings)
{
    for (const auto& [key, value] : json.items()) {
        const std::string name = prefix.empty() ? key : prefix + "." + key;
        if (value.is_object())
            flatten(value, name, settings);
        else
            settings.emplace_back(name,
                                  value.is_string() ? value.get<std::string>() : value.dump());
    }
}

} // namespace

std::string fixedText(double value, int decimals)
{
    constexpr int most = 17;
    if (!std::isfinite(value))
        return noNumber;
    if (std::abs(value) >= widestFixed)
        return shortText(value);
    std::string text = print(value, std::chars_format::fixed, std::clamp(decimals, 0, most));
    if (text.starts_with('-') && isZeroText(text))
        text.erase(0, 1);
    return text;
}

std::string signedText(double value, int decimals)
{
    std::string text = fixedText(value, decimals);
    if (!std::isfinite(value) || isZeroText(text))
        return text;
    return text.starts_with('-') ? "−" + text.substr(1) : "+" + text;
}

std::string shortText(double value)
{
    constexpr int digits = 3;
    return std::isfinite(value) ? print(value, std::chars_format::general, digits) : noNumber;
}

std::string exactText(double value)
{
    if (std::isnan(value))
        return "NaN";
    std::array<char, 64> buffer = {};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
}

std::string converterLabel(const std::string& converter)
{
    if (converter == "transmla")
        return "TransMLA";
    if (converter == "mha2mla")
        return "MHA2MLA";
    return converter;
}

std::string draftLabel(const RunRecord& run)
{
    if (run.kvLoraRank <= 0)
        return run.converter.empty() ? run.variant : converterLabel(run.converter);
    const std::int64_t rotary = run.cacheElements - run.kvLoraRank;
    std::string text = converterLabel(run.converter) + " " + std::to_string(run.kvLoraRank) + "+";
    if (run.qkRopeHeadDim > 0 && rotary > run.qkRopeHeadDim && rotary % run.qkRopeHeadDim == 0)
        text += std::to_string(rotary / run.qkRopeHeadDim) + "×";
    return text + std::to_string(run.qkRopeHeadDim);
}

std::string runLabel(const RunRecord& run)
{
    const std::string draft = draftLabel(run);
    return draft == run.variant ? draft : draft + ", " + run.variant;
}

std::string fileStem(const std::string& id)
{
    std::string stem = id;
    for (char& c : stem) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '+' || c == '_';
        const bool dotInside = c == '.' && &c != &stem.front();
        if (!plain && !dotInside)
            c = '-';
    }
    return stem;
}

std::optional<std::vector<std::pair<std::string, std::string>>>
flatSettings(const std::string& settingsJson)
{
    const auto json = nlohmann::json::parse(settingsJson, nullptr, false);
    if (!json.is_object())
        return std::nullopt;
    std::vector<std::pair<std::string, std::string>> settings;
    flatten(json, {}, settings);
    return settings;
}

std::string uniqueStem(const std::string& id, std::set<std::string>& used)
{
    const std::string stem = fileStem(id);
    std::string unique = stem;
    for (int copy = 2; !used.insert(unique).second; ++copy)
        unique = stem + "-" + std::to_string(copy);
    return unique;
}

const std::vector<std::string>& allStages()
{
    static const std::vector<std::string> stages = {"original", "rope_removed", "low_rank",
                                                    "refined"};
    return stages;
}

std::vector<std::string> stagesOf(const RunRecord& run)
{
    std::vector<std::string> stages;
    for (const std::string& stage : allStages())
        if (run.stages.contains(stage))
            stages.push_back(stage);
    return stages;
}

std::string stageLabel(const std::string& stage)
{
    return stage == "rope_removed" ? "rotation removed" : stage == "low_rank" ? "low rank" : stage;
}

std::optional<double> finalPerplexity(const RunRecord& run)
{
    const char* stage = run.variant == "original"    ? "original"
                        : run.variant == "converted" ? "low_rank"
                                                     : "refined";
    const auto found = run.stages.find(stage);
    return found == run.stages.end() ? std::nullopt : std::optional(found->second.perplexity);
}

} // namespace mla
