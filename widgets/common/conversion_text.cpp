// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/conversion_text.h"

#include <QCoreApplication>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

QString tr(const char* text)
{
    return QCoreApplication::translate("ConversionText", text);
}

QString ropeText(const ModelConfig& config, const ConvertSettings& settings)
{
    if (settings.converter == "mha2mla")
        return tr("Must be even, 2 to %1.").arg(config.headDim);
    return tr("Must be even and divide the head dimension %1, or be a multiple of it up to %2.")
        .arg(config.headDim)
        .arg(config.numKeyValueHeads * config.headDim);
}

QString savingText(const ModelConfig& config, const ConvertSettings& settings,
                   const ConversionLimits& limits)
{
    const QString fact = tr("Saves nothing: %1 cache elements against %2.")
                             .arg(plannedCacheElements(config, settings))
                             .arg(originalCacheElements(config));
    return limits.largestSavingRank < 1
               ? fact
               : fact + QLatin1Char(' ') +
                     tr("The largest rank that saves is %1.").arg(limits.largestSavingRank);
}

} // namespace

QString issueText(const ConversionIssue& issue, const ModelConfig& config,
                  const ConvertSettings& settings)
{
    const ConversionLimits limits = conversionLimits(config, settings);
    switch (issue.setting) {
    case ConversionSetting::QkRopeHeadDim:
        return ropeText(config, settings);
    case ConversionSetting::KvLoraRank:
        return issue.blocking ? tr("Must be 1 to %1.").arg(limits.largestRank)
                              : savingText(config, settings, limits);
    case ConversionSetting::Freqfold:
        if (!limits.freqfolds.empty())
            return tr("Must be a multiple of %1 that divides %2.")
                .arg(limits.freqfolds.front())
                .arg(config.headDim / 2);
        break;
    case ConversionSetting::RopeSelect:
        return tr("Uniform selection needs dimensions that divide %1.").arg(config.headDim);
    default:
        break;
    }
    return text(issue.error.text()); // core's own words, which name the reason
}

QString converterTitle(const std::string& converter)
{
    return converter == "mha2mla" ? tr("MHA2MLA") : tr("TransMLA");
}

} // namespace mla::ui
