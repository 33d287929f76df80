// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/format.h"

#include <cmath>

#include <QLocale>

namespace mla::ui
{

QString missingText()
{
    return QStringLiteral("–");
}

QString numberText(double value, int decimals)
{
    return std::isfinite(value) ? QString::number(value, 'f', decimals) : missingText();
}

QString numberText(const std::optional<double>& value, int decimals)
{
    return value ? numberText(*value, decimals) : missingText();
}

QString significantText(double value)
{
    if (!std::isfinite(value))
        return missingText();
    const double size = std::abs(value);
    if (size != 0 && (size < 1e-3 || size >= 1e5))
        return QString::number(value, 'e', 2);
    return QString::number(value, 'g', 4);
}

QString signedText(double value, int decimals)
{
    if (!std::isfinite(value))
        return missingText();
    const QString digits = QString::number(std::abs(value), 'f', decimals);
    const bool zero = digits.toDouble() == 0;
    if (zero)
        return digits;
    return (value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + digits;
}

QString durationText(double seconds)
{
    if (!std::isfinite(seconds) || seconds < 0)
        return missingText();
    const auto total = static_cast<qint64>(std::llround(seconds));
    const QString clock = QStringLiteral("%1:%2")
                              .arg(total / 60 % 60, total >= 3600 ? 2 : 1, 10, QLatin1Char('0'))
                              .arg(total % 60, 2, 10, QLatin1Char('0'));
    return total >= 3600 ? QStringLiteral("%1:%2").arg(total / 3600).arg(clock) : clock;
}

QString countText(qint64 count)
{
    static const QLocale grouped(QLocale::English, QLocale::UnitedStates);
    return grouped.toString(count);
}

QString bytesText(qint64 bytes)
{
    return bytes > 0 ? QLocale::c().formattedDataSize(bytes, 1) : missingText();
}

} // namespace mla::ui
