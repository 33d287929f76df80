// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/base/file.h"
#include "core/checkpoint/tokenizer.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

Output encoded(const Tokenizer& tokenizer, const std::string& text, bool specials)
{
    const std::vector<int> ids = tokenizer.encode(text, specials);
    json tokens = json::array();
    std::string idLine, tokenLine;
    for (const int id : ids) {
        const std::optional<std::string> token = tokenizer.tokenOf(id);
        tokens.push_back(orNull(token));
        idLine += (idLine.empty() ? "" : ",") + std::to_string(id);
        tokenLine += (tokenLine.empty() ? "" : " ") + printable(token.value_or("?"));
    }
    return {{{"ids", ids}, {"tokens", std::move(tokens)}}, idLine + "\n" + tokenLine + "\n", {}};
}

class Tokenize : public Command
{
public:
    std::string name() const override { return "tokenize"; }
    std::string summary() const override { return "token ids of a text, or the text of ids"; }
    std::string examples() const override
    {
        return "Examples:\n"
               "  mla-draft tokenize models/SmolLM2-135M --text \"Once upon a time\"\n"
               "  mla-draft tokenize models/SmolLM2-135M --decode 1,2,3";
    }
    bool stoppable() const override { return false; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT",
                         "model directory or GGUF file, or a tokenizer.json or tokenizer.model");
        m_textOption = parser.add_option("--text", m_text, "text to encode")->type_name("TEXT");
        m_fileOption = parser.add_option("--file", m_file, "file whose whole text is encoded")
                           ->type_name("FILE");
        m_decodeOption =
            parser
                .add_option("--decode", m_decode, "ids to decode: 1,2,3; special tokens are kept")
                ->type_name("IDS");
        parser
            .add_flag("--no-special", m_noSpecial,
                      "encode without the special tokens that the tokenizer adds")
            ->excludes(m_decodeOption);
    }
    Result<Output> run(JobContext&) override
    {
        if (m_textOption->count() + m_fileOption->count() + m_decodeOption->count() != 1)
            return usageError("give exactly one of --text, --file and --decode");
        MLA_TRY(ids, parseIds(m_decode, "--decode"));
        MLA_TRY(tokenizer, Tokenizer::open(m_model));
        if (m_decodeOption->count() > 0) {
            MLA_TRY(text, tokenizer.decode(ids));
            return Output{{{"text", text}}, text + "\n", {}};
        }
        if (m_fileOption->count() > 0) {
            MLA_TRY(content, readFile(m_file));
            m_text = std::move(content);
        }
        return encoded(tokenizer, m_text, !m_noSpecial);
    }

private:
    std::string m_model, m_text, m_file, m_decode;
    bool m_noSpecial = false;
    CLI::Option *m_textOption = nullptr, *m_fileOption = nullptr, *m_decodeOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeTokenize()
{
    return std::make_unique<Tokenize>();
}

} // namespace mla::cli
