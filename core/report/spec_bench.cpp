// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/spec_bench.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "core/base/json.h"

namespace mla
{
namespace
{

using nlohmann::json;
using Lengths = std::vector<int>; ///< tokens that each step of a prompt gave

/// Whether the last counted step of a prompt says that one more, with nothing to draft, followed.
enum class PlainEnd { No, Yes, Open };

PlainEnd plainEnd(int drafted, int accepted, int k)
{
    if (accepted < drafted) // something was left to draft for, yet no drafting step follows
        return PlainEnd::Yes;
    return drafted < k ? PlainEnd::No : PlainEnd::Open;
}

/// [prompts][steps], steps with nothing to draft included.
std::vector<Lengths> promptLengths(const AcceptanceRecord& record)
{
    const auto last = std::ranges::max_element(record.prompt);
    std::vector<Lengths> prompts(last == record.prompt.end() ? 0
                                                             : static_cast<std::size_t>(*last) + 1);
    std::vector<PlainEnd> ends(prompts.size(), PlainEnd::Yes); // without a step: one plain token
    for (std::size_t i = 0; i < record.prompt.size(); ++i) {
        const auto prompt = static_cast<std::size_t>(record.prompt[i]);
        prompts[prompt].push_back(record.accepted[i] + 1);
        ends[prompt] = plainEnd(record.drafted[i], record.accepted[i], record.k);
    }
    auto plain = static_cast<std::int64_t>(record.plainSteps);
    for (const PlainEnd wanted : {PlainEnd::Yes, PlainEnd::Open})
        for (std::size_t prompt = 0; prompt < prompts.size() && plain > 0; ++prompt)
            if (ends[prompt] == wanted) {
                prompts[prompt].push_back(1);
                --plain;
            }
    for (; plain > 0; --plain) // prompts behind the last with a step
        prompts.push_back({1});
    return prompts;
}

struct Turn {
    std::int64_t tokens = 0;
    Lengths steps;
};

struct Question {
    std::string task, model;
    std::vector<Turn> turns;
    double seconds = 0;
};

/// A list of numbers, none below `lowest`.
template <typename Number>
Result<std::vector<Number>> numbers(const json& object, const char* key, Number lowest,
                                    const std::string& where)
{
    const auto it = object.find(key);
    std::vector<Number> values;
    if (it != object.end() && it->is_array())
        for (const json& value : *it) {
            const bool fits =
                std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
            if (fits && value.get<double>() >= static_cast<double>(lowest) &&
                value.get<double>() < 1e9)
                values.push_back(value.get<Number>());
        }
    if (it == object.end() || !it->is_array() || values.size() != it->size())
        return badInput(std::string("\"") + key + "\" is not a list of numbers of at least " +
                            json(lowest).dump(),
                        where);
    return values;
}

/// Gives every turn its steps: those that make up its tokens. If the sums do not meet (some methods
/// count tokens beyond the end), the question is one text.
std::vector<Turn> splitTurns(const Lengths& lengths, const std::vector<int>& newTokens)
{
    std::vector<Turn> turns;
    std::size_t next = 0;
    for (const int tokens : newTokens) {
        Turn turn;
        while (next < lengths.size() && turn.tokens < tokens) {
            turn.tokens += lengths[next];
            turn.steps.push_back(lengths[next++]);
        }
        if (turn.tokens != tokens)
            break;
        turns.push_back(std::move(turn));
    }
    if (next == lengths.size() && turns.size() == newTokens.size())
        return turns;
    return {{std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), lengths}};
}

std::string text(const json& object, const char* key)
{
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Result<Question> readQuestion(const std::string& line, const std::string& where, int k)
{
    MLA_TRY(object, parseJson(line, where));
    const auto choices = object.is_object() ? object.find("choices") : object.end();
    if (!object.is_object() || choices == object.end() || !choices->is_array() ||
        choices->empty() || !choices->front().is_object())
        return badInput("expected an object with \"choices\", a list of objects", where);
    const json& choice = choices->front();
    MLA_TRY(lengths, numbers<int>(choice, "accept_lengths", 1, where));
    MLA_TRY(newTokens, numbers<int>(choice, "new_tokens", 0, where));
    MLA_TRY(seconds, numbers<double>(choice, "wall_time", 0, where));
    for (const int length : lengths)
        if (length > k + 1)
            return badInput("a step gave " + std::to_string(length) + " tokens: with " +
                                std::to_string(k) + " drafted there are at most " +
                                std::to_string(k + 1),
                            where, "-k must be the number that was drafted");
    Question question{text(object, "category"), text(object, "model_id"),
                      splitTurns(lengths, newTokens),
                      std::accumulate(seconds.begin(), seconds.end(), 0.0)};
    return question;
}

void addQuestion(AcceptanceRecord& record, const Question& question, int index)
{
    for (const Turn& turn : question.turns) {
        std::int64_t left = turn.tokens;
        for (const int length : turn.steps) {
            const auto drafted = static_cast<int>(std::min<std::int64_t>(record.k, left - 1));
            if (drafted == 0) {
                ++record.plainSteps;
            } else {
                record.prompt.push_back(index);
                record.drafted.push_back(drafted);
                record.accepted.push_back(length - 1);
            }
            left -= length;
        }
        record.tokens += turn.tokens;
    }
    record.wallTime += question.seconds;
}

AcceptanceRecord emptyRecord(const Question& first, const std::string& task,
                             const SpecBenchImport& import)
{
    AcceptanceRecord record;
    record.target = import.target;
    record.run = import.run.empty() ? first.model : import.run;
    record.task = task;
    record.backend = import.backend;
    record.method = "speculative";
    record.k = import.k;
    record.temperature = import.temperature;
    record.settingsJson = json{{"imported", "Spec-Bench"}, {"model_id", first.model}}.dump();
    record.id = record.run + "|" + record.target + "|" + task + "|" + record.backend + "|" +
                record.method + "|k" + std::to_string(record.k) +
                (record.temperature > 0 ? "|T" + json(record.temperature).dump() : "");
    return record;
}

} // namespace

Result<std::string> specBenchLines(const AcceptanceRecord& record, double timestamp)
{
    if (record.method == "replay" && record.temperature > 0)
        return badInput("a replay of sampling has expected counts, no steps", record.id);
    const std::vector<Lengths> prompts = promptLengths(record);
    const auto sum = [](const Lengths& lengths) {
        return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    };
    std::int64_t all = 0;
    for (const Lengths& lengths : prompts)
        all += sum(lengths);
    std::string lines;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        const std::int64_t tokens = sum(prompts[i]);
        json seconds = json::array();
        if (record.tokensPerSecond)
            seconds.push_back(record.wallTime * static_cast<double>(tokens) /
                              static_cast<double>(all));
        const json choice = {{"index", 0},
                             {"turns", {""}},
                             {"decoding_steps", {prompts[i].size()}},
                             {"new_tokens", {tokens}},
                             {"wall_time", std::move(seconds)},
                             {"accept_lengths", prompts[i]}};
        lines += json{{"question_id", i},
                      {"category", record.task},
                      {"answer_id", record.id + "#" + std::to_string(i)},
                      {"model_id", record.run},
                      {"choices", json::array({choice})},
                      {"tstamp", timestamp}}
                     .dump() +
                 "\n";
    }
    return lines;
}

Result<std::vector<AcceptanceRecord>>
readSpecBench(const std::string& text, const std::string& origin, const SpecBenchImport& import)
{
    std::vector<AcceptanceRecord> records;
    std::vector<int> questions; // of each record
    std::istringstream in(text);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos)
            continue;
        const std::string where = origin + ", line " + std::to_string(number);
        MLA_TRY(question, readQuestion(line, where, import.k));
        const std::string task = import.task.empty() ? question.task : import.task;
        if (task.empty())
            return badInput("has no \"category\"", where, "name the task with --task");
        if (import.run.empty() && question.model.empty())
            return badInput("has no \"model_id\"", where, "name the draft with --run");
        const AcceptanceRecord wanted = emptyRecord(question, task, import);
        auto it = std::ranges::find(records, wanted.id, &AcceptanceRecord::id);
        if (it == records.end()) {
            it = records.insert(it, wanted);
            questions.push_back(0);
        }
        addQuestion(*it, question, questions[static_cast<std::size_t>(it - records.begin())]++);
    }
    if (records.empty())
        return badInput("no questions: expected one JSON object a line", origin);
    for (AcceptanceRecord& record : records) {
        if (record.prompt.empty())
            return badInput("no step of " + record.task + " drafted anything", origin);
        if (record.wallTime > 0)
            record.tokensPerSecond = static_cast<double>(record.tokens) / record.wallTime;
    }
    return records;
}

} // namespace mla
