// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/fuzzy_match.h"

#include <algorithm>

#include <QStringList>

namespace mla::ui
{
namespace
{

// Kinds of fit lie farther apart than the details within one can move a score.
constexpr int wordScore = 2'000'000;
constexpr int lettersScore = 1'000'000;
constexpr int mostPenalty = 999'999;

bool beginsWord(const QString& name, qsizetype at)
{
    return at == 0 || (name[at].isLetterOrNumber() && !name[at - 1].isLetterOrNumber());
}

/// Where the words of `typed` begin words of `name`, one after another: the first one's place.
std::optional<qsizetype> wordPrefixes(const QStringList& typed, const QString& name)
{
    std::optional<qsizetype> first;
    qsizetype from = 0;
    for (const QString& word : typed) {
        qsizetype at = name.indexOf(word, from);
        while (at >= 0 && !beginsWord(name, at))
            at = name.indexOf(word, at + 1);
        if (at < 0)
            return std::nullopt;
        first = first.value_or(at);
        from = at + word.size();
    }
    return first;
}

/// Place after the last letter, if `letters` occur in order from `start` on.
std::optional<qsizetype> endOfLetters(const QString& letters, const QString& name, qsizetype start)
{
    qsizetype at = start;
    for (const QChar letter : letters) {
        at = name.indexOf(letter, at);
        if (at < 0)
            return std::nullopt;
        ++at;
    }
    return at;
}

/// Letters skipped count most: the tightest place wins over the earliest.
std::optional<int> lettersPenalty(const QString& letters, const QString& name)
{
    std::optional<int> best;
    for (qsizetype at = name.indexOf(letters.front()); at >= 0;
         at = name.indexOf(letters.front(), at + 1)) {
        const auto end = endOfLetters(letters, name, at);
        if (!end)
            break; // none later either
        const qsizetype skipped = *end - at - letters.size();
        const int penalty = int(skipped * 1000 + at);
        best = std::min(best.value_or(penalty), penalty);
    }
    return best;
}

} // namespace

std::optional<int> fuzzyScore(QStringView typed, QStringView name)
{
    const QString wanted = typed.toString().simplified().toCaseFolded();
    const QString text = name.toString().toCaseFolded();
    if (wanted.isEmpty())
        return 0;
    const auto penalised = [](int score, qsizetype penalty) {
        return score - int(std::min<qsizetype>(penalty, mostPenalty));
    };
    // Of equal fits the shorter name is the more exact one.
    if (const auto at = wordPrefixes(wanted.split(QLatin1Char(' ')), text))
        return penalised(wordScore, *at * 1000 + text.size());
    if (const auto penalty = lettersPenalty(QString(wanted).remove(QLatin1Char(' ')), text))
        return penalised(lettersScore, *penalty);
    return std::nullopt;
}

} // namespace mla::ui
