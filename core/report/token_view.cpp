// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/token_view.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/checkpoint/tokenizer_unicode.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr auto kept = static_cast<std::size_t>(TokenChoices::perToken);

const ContinuationRecord* continuationOf(const StudyData& study, const std::string& id)
{
    const auto found = std::ranges::find(study.continuations, id, &ContinuationRecord::id);
    return id.empty() || found == study.continuations.end() ? nullptr : &*found;
}

const TokenTextRecord* wordsOf(const StudyData& study, const std::string& target)
{
    const auto found = std::ranges::find(study.tokenTexts, target, &TokenTextRecord::id);
    return found == study.tokenTexts.end() ? nullptr : &*found;
}

bool isGreedyReplay(const AcceptanceRecord& row)
{
    return row.method == "replay" && row.temperature == 0 && !row.choices.empty();
}

/// Every position of the text has its choices.
bool fits(const AcceptanceRecord& row, const ContinuationRecord& text)
{
    return row.choices.ids.size() == kept * text.ids.size() &&
           row.choices.probabilities.size() == row.choices.ids.size();
}

std::string wordOf(const TokenTextRecord* words, std::int32_t id)
{
    const std::string* bytes = words ? words->find(id) : nullptr;
    return bytes ? visibleToken(*bytes) : "#" + std::to_string(id);
}

std::vector<TokenChoice> choicesAt(const TokenChoices& choices, std::size_t position,
                                   const TokenTextRecord* words)
{
    std::vector<TokenChoice> all;
    for (std::size_t i = kept * position; i < kept * (position + 1); ++i)
        if (i < choices.ids.size() && choices.ids[i] >= 0)
            all.push_back(
                {choices.ids[i], wordOf(words, choices.ids[i]), choices.probabilities[i]});
    return all;
}

/// The steps of one prompt laid along its text; nothing if they do not fit it.
std::optional<std::vector<TokenMark>> marksOf(const AcceptanceRecord& row, int prompt,
                                              std::size_t length)
{
    std::vector<TokenMark> marks;
    for (std::size_t step = 0; step < row.prompt.size(); ++step) {
        if (row.prompt[step] != prompt)
            continue;
        marks.insert(marks.end(), static_cast<std::size_t>(row.accepted[step]),
                     TokenMark::Accepted);
        marks.push_back(row.accepted[step] < row.drafted[step] ? TokenMark::Corrected
                                                               : TokenMark::Bonus);
    }
    if (marks.size() > length)
        return std::nullopt;
    marks.resize(length, TokenMark::Plain);
    return marks;
}

/// Length of the UTF-8 character at `at`, 0 where there is no whole one.
std::size_t characterLength(std::string_view bytes, std::size_t at)
{
    constexpr std::size_t longest = 4;
    for (std::size_t length = 1; length <= std::min(longest, bytes.size() - at); ++length)
        if (tok::isValidUtf8(bytes.substr(at, length)))
            return length;
    return 0;
}

std::string hexByte(unsigned char byte)
{
    constexpr std::array<char, 17> digits{"0123456789ABCDEF"};
    return {'\\', 'x', digits.at(byte >> 4U), digits.at(byte & 0xFU)};
}

std::string visibleCharacter(const std::string& character)
{
    if (character == " ")
        return "␣";
    if (character == "\n")
        return "⏎";
    if (character == "\t")
        return "⇥";
    const auto first = static_cast<unsigned char>(character.front());
    return character.size() == 1 && (first < 0x20U || first == 0x7FU) ? hexByte(first) : character;
}

std::string lineName(const StudyData& study, const AcceptanceRecord& row)
{
    const RunRecord* run = study.findRun(row.run);
    return run && run->variant != "original" ? runLabel(*run) : "original";
}

DraftLine draftLine(const StudyData& study, const AcceptanceRecord& row,
                    const std::vector<TokenMark>& marks, std::size_t first,
                    const TokenTextRecord* words)
{
    const RunRecord* run = study.findRun(row.run);
    DraftLine line{row.run, lineName(study, row), run ? run->variant : "original", {}};
    for (std::size_t i = 0; i < marks.size(); ++i)
        line.tokens.push_back({marks[i], choicesAt(row.choices, first + i, words)});
    return line;
}

} // namespace

std::vector<TokenSource> tokenSources(const StudyData& study)
{
    std::vector<TokenSource> sources;
    for (const AcceptanceRecord& row : study.acceptance) {
        const ContinuationRecord* text = continuationOf(study, row.continuation);
        if (!isGreedyReplay(row) || !text || !fits(row, *text))
            continue;
        TokenSource source{text->id, row.target, row.task, row.k,
                           static_cast<int>(text->offsets.size()) - 1};
        if (source.prompts > 0 && std::ranges::find(sources, source) == sources.end())
            sources.push_back(std::move(source));
    }
    return sources;
}

std::string markName(TokenMark mark)
{
    switch (mark) {
    case TokenMark::Accepted:
        return "accepted";
    case TokenMark::Corrected:
        return "rejected";
    case TokenMark::Bonus:
        return "bonus";
    case TokenMark::Plain:
        break;
    }
    return "not drafted";
}

TokenText tokenText(const StudyData& study, const TokenSource& source, int prompt)
{
    TokenText out;
    const ContinuationRecord* text = continuationOf(study, source.continuation);
    const auto index = static_cast<std::size_t>(prompt);
    if (!text || prompt < 0 || index + 1 >= text->offsets.size())
        return out;
    const auto first = static_cast<std::size_t>(text->offsets[index]);
    const auto length = static_cast<std::size_t>(text->offsets[index + 1]) - first;
    const TokenTextRecord* words = wordsOf(study, source.target);
    for (std::size_t i = first; i < first + length; ++i)
        out.tokens.push_back(
            {text->ids[i], wordOf(words, text->ids[i]), choicesAt(text->choices, i, words)});
    for (const AcceptanceRecord& row : study.acceptance) {
        if (!isGreedyReplay(row) || row.continuation != source.continuation || row.k != source.k ||
            row.target != source.target || !fits(row, *text))
            continue;
        if (const auto marks = marksOf(row, prompt, length))
            out.drafts.push_back(draftLine(study, row, *marks, first, words));
    }
    const auto place = [&](const DraftLine& line) {
        const auto run = std::ranges::find(study.runs, line.run, &RunRecord::id);
        return line.variant == "original" ? -1 : run - study.runs.begin();
    };
    std::ranges::stable_sort(out.drafts, {}, place);
    return out;
}

Table tokenTable(const TokenText& text, const TokenSource& source, int prompt)
{
    Table table;
    table.id = "tokens-" + fileStem(source.task) + "-" + std::to_string(prompt + 1) + "-k" +
               std::to_string(source.k);
    table.title = "Tokens of " + source.task + ", prompt " + std::to_string(prompt + 1) +
                  ", k = " + std::to_string(source.k);
    constexpr int digits = 1;
    constexpr double percent = 100;
    table.columns = {{"Position", ""}, {"Token", ""}, {"Probability", "%", digits}};
    for (const DraftLine& draft : text.drafts) {
        table.columns.push_back({draft.name, ""});
        table.columns.push_back({draft.name + ", likeliest", ""});
        table.columns.push_back({draft.name + ", probability", "%", digits});
    }
    const auto probability = [](const std::vector<TokenChoice>& choices) -> Cell {
        return choices.empty() ? Cell() : Cell(percent * choices.front().probability);
    };
    for (std::size_t i = 0; i < text.tokens.size(); ++i) {
        const TextToken& token = text.tokens[i];
        std::vector<Cell> row = {static_cast<std::int64_t>(i + 1), token.text,
                                 probability(token.choices)};
        for (const DraftLine& draft : text.drafts) {
            const DraftToken& drafted = draft.tokens[i];
            row.emplace_back(markName(drafted.mark));
            row.push_back(drafted.choices.empty() ? Cell() : Cell(drafted.choices.front().text));
            row.push_back(probability(drafted.choices));
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

std::string visibleToken(const std::string& bytes)
{
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = characterLength(bytes, at);
        out += length > 0 ? visibleCharacter(bytes.substr(at, length))
                          : hexByte(static_cast<unsigned char>(bytes[at]));
        at += std::max<std::size_t>(length, 1);
    }
    return out;
}

std::vector<std::vector<double>> acceptanceChances(const StudyData& study,
                                                   const AcceptanceRecord& row)
{
    std::vector<std::vector<double>> chances;
    const ContinuationRecord* text = continuationOf(study, row.continuation);
    const bool greedy = row.temperature == 0;
    if (!text || (greedy ? !fits(row, *text) : row.acceptProbability.size() != text->ids.size()))
        return chances;
    for (std::size_t prompt = 0; prompt + 1 < text->offsets.size(); ++prompt) {
        chances.emplace_back();
        for (auto i = static_cast<std::size_t>(text->offsets[prompt]);
             i < static_cast<std::size_t>(text->offsets[prompt + 1]); ++i)
            chances.back().push_back(
                greedy ? static_cast<double>(row.choices.ids[kept * i] == text->ids[i])
                       : row.acceptProbability[i]);
    }
    return chances;
}

} // namespace mla
