// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/chat_prompts.h"

#include <map>

#include "core/backends/chat_template.h"
#include "core/base/sha256.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using Rendered = std::map<std::string, std::vector<int>>; ///< by the SHA-256 of the text

Rendered fromRecord(const ChatPromptRecord& record)
{
    Rendered known;
    for (std::size_t i = 0; i < record.prompts.size(); ++i)
        known[record.prompts[i]] = {record.ids.begin() + record.offsets[i],
                                    record.ids.begin() + record.offsets[i + 1]};
    return known;
}

Result<Rendered> storedPrompts(const std::optional<fs::path>& study, const std::string& id)
{
    if (!study || !fs::exists(*study))
        return Rendered{};
    MLA_TRY(data, loadStudy(*study));
    for (const ChatPromptRecord& record : data.chatPrompts)
        if (record.id == id)
            return fromRecord(record);
    return Rendered{};
}

Status storePrompts(const fs::path& study, ChatPromptRecord record, const Rendered& known)
{
    record.offsets = {0};
    for (const auto& [key, ids] : known) {
        record.prompts.push_back(key);
        record.ids.insert(record.ids.end(), ids.begin(), ids.end());
        record.offsets.push_back(static_cast<std::int32_t>(record.ids.size()));
    }
    return updateStudy(study, [&](StudyData& data) -> Status {
        data.software = softwareText();
        data.put(std::move(record));
        return {};
    });
}

} // namespace

Result<ChatPromptIds> chatPromptIds(JobContext& job, const fs::path& model,
                                    const std::vector<std::string>& texts,
                                    const std::optional<fs::path>& study, const std::string& python)
{
    ChatPromptIds out;
    MLA_TRY(fingerprint, chatFingerprint(model));
    MLA_TRY(known, storedPrompts(study, fingerprint));
    std::map<std::string, std::string> missing; // text by key
    for (const std::string& text : texts)
        if (const std::string key = sha256Hex(text); !known.contains(key))
            missing[key] = text;
    if (!missing.empty()) {
        std::vector<std::string> fresh;
        for (const auto& [key, text] : missing)
            fresh.push_back(text);
        MLA_TRY(rendered, renderChat(job, model, fresh, python));
        std::size_t next = 0;
        for (const auto& [key, text] : missing)
            known[key] = std::move(rendered.ids[next++]);
        if (study)
            MLA_CHECK(storePrompts(
                *study, {fingerprint, checkpointId(model), rendered.software, {}, {}, {}}, known));
        else if (rendered.dated)
            out.warnings.emplace_back("the chat template may write today's date into the prompts: "
                                      "without a study they are rendered anew in every run");
    }
    for (const std::string& text : texts)
        out.ids.push_back(known.at(sha256Hex(text)));
    return out;
}

Result<std::string> cutText(const Tokenizer& tokenizer, const std::string& text, int tokens)
{
    static const std::string replacement = "\xEF\xBF\xBD"; // stands for half a character
    std::vector<int> ids = tokenizer.encode(text, /*addSpecialTokens=*/false);
    if (ids.size() <= static_cast<std::size_t>(tokens))
        return text;
    ids.resize(static_cast<std::size_t>(tokens));
    MLA_TRY(cut, tokenizer.decode(ids));
    while (cut.ends_with(replacement))
        cut.resize(cut.size() - replacement.size());
    return std::move(cut);
}

} // namespace mla
