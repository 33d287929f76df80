// SPDX-License-Identifier: GPL-3.0-or-later
// Pairs whose vocabularies are padded: what a padding row says must never be proposed or accepted,
// and rates are those of the models without padding.
#include <fstream>

#include "core/checkpoint/tokenizer.h"
#include "core/model/sampling.h"
#include "core/pipeline/pipeline.h"
#include "tests/support/test_drafts.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
namespace fs = std::filesystem;

namespace
{
constexpr int kVocabulary = 512, kPadded = 1024;
}

class TestPaddedPair : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void paddingIsTheDraftsFirstChoice();
    void sameRates_data();
    void sameRates();
    void samplingLeavesPaddingOut();
    void tokenThatOneSideLacks();
    void endThatTheDraftLacks();

private:
    [[nodiscard]] AcceptOutcome measure(const fs::path& target, const fs::path& draft,
                                        const std::string& method);
    fs::path writePadded();
    fs::path writeTokenizer(const std::string& name, const char* from, const char* to);
    QTemporaryDir m_folder;
    fs::path m_root, m_padded, m_draft;
    JobContext m_job;
};

/// stories260K with 512 more rows, each three times the row of a real token: where the best real
/// logit is positive, a padding row has a larger one.
fs::path TestPaddedPair::writePadded()
{
    const fs::path folder = m_root / "padded";
    fs::copy(stories(), folder);
    const Checkpoint original = must(Checkpoint::open(stories()));
    std::vector<torch::Tensor> kept;
    std::vector<TensorView> views;
    for (const std::string& name : original.names()) {
        torch::Tensor value = must(loadTensor(original, name, torch::kFloat32)).contiguous();
        if (name == "model.embed_tokens.weight" || name == "lm_head.weight")
            value = torch::cat({value, value * 3});
        kept.push_back(value);
        views.push_back(viewOf(name, kept.back()));
    }
    must(writeSafetensors(folder / "model.safetensors", views));
    std::ifstream in(stories() / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    config["vocab_size"] = kPadded;
    std::ofstream(folder / "config.json") << config.dump();
    return folder;
}

/// stories260K with a tokenizer in which the text `from` is replaced by `to`.
fs::path TestPaddedPair::writeTokenizer(const std::string& name, const char* from, const char* to)
{
    const fs::path folder = m_root / name;
    fs::copy(stories(), folder);
    std::ifstream in(stories() / "tokenizer.json");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::size_t at = text.find(from);
    if (at == std::string::npos)
        throw std::runtime_error("the tokenizer does not hold the text to replace");
    text.replace(at, std::string(from).size(), to);
    std::ofstream(folder / "tokenizer.json") << text;
    return folder;
}

void TestPaddedPair::initTestCase()
{
    useOneThread();
    m_root = m_folder.path().toStdString();
    m_padded = writePadded();
    m_draft = m_root / "draft";
    (void)convertedStories(m_draft);
    std::ofstream(m_root / "tales.jsonl")
        << R"({"prompt": "Once upon a time, there was a little girl named Lily."})" << '\n'
        << R"({"prompt": "Tom and his dog went to the park."})" << '\n'
        << R"({"prompt": "The sun was hot"})" << '\n';
}

AcceptOutcome TestPaddedPair::measure(const fs::path& target, const fs::path& draft,
                                      const std::string& method)
{
    AcceptRequest request;
    request.target = target;
    request.draft = draft;
    request.settings.tasks = {m_root / "tales.jsonl"};
    request.settings.method = method;
    request.settings.maxNewTokens = 48;
    request.compute.device = "cpu";
    return must(measureAcceptance(m_job, request));
}

/// Without the mask the pair would fail, so that the tests below mean something.
void TestPaddedPair::paddingIsTheDraftsFirstChoice()
{
    const Decoder padded = openModel(m_padded);
    const torch::NoGradGuard noGrad;
    const torch::Tensor logits = padded.logits(idTensor({1, 403, 407}, torch::kCPU))[0];
    QCOMPARE(logits.size(-1), std::int64_t{kPadded});
    QVERIFY((logits.argmax(-1) >= kVocabulary).all().item<bool>());
    StopRule stop;
    stop.vocabulary.size = kVocabulary;
    QVERIFY((greedyTokens(logits, stop, 0) < kVocabulary).all().item<bool>());
}

void TestPaddedPair::sameRates_data()
{
    QTest::addColumn<bool>("paddedTarget");
    QTest::addColumn<bool>("paddedDraft");
    QTest::addColumn<QString>("method");
    for (const char* method : {"replay", "speculative"}) {
        QTest::addRow("target padded, %s", method) << true << false << method;
        QTest::addRow("draft padded, %s", method) << false << true << method;
        QTest::addRow("both padded, %s", method) << true << true << method;
    }
}

void TestPaddedPair::sameRates()
{
    QFETCH(bool, paddedTarget);
    QFETCH(bool, paddedDraft);
    QFETCH(QString, method);
    // The padded model as draft is its own target's equal: every token is accepted.
    const fs::path target = paddedTarget ? m_padded : stories();
    const AcceptOutcome own =
        measure(target, paddedDraft ? m_padded : stories(), method.toStdString());
    QCOMPARE(own.pooled.metrics.acceptanceRate, 1.0);
    QVERIFY(own.warnings.empty());
    if (own.pooled.identicalToGreedy)
        QVERIFY(*own.pooled.identicalToGreedy);
    if (paddedDraft)
        return;
    // A lossy draft keeps its rate when the target's vocabulary is padded.
    const AcceptOutcome plain = measure(stories(), m_draft, method.toStdString());
    const AcceptOutcome padded = measure(target, m_draft, method.toStdString());
    QVERIFY(plain.pooled.metrics.acceptanceRate < 1);
    QCOMPARE(padded.pooled.metrics.acceptedTokens, plain.pooled.metrics.acceptedTokens);
    QCOMPARE(padded.pooled.metrics.draftTokens, plain.pooled.metrics.draftTokens);
    QCOMPARE(padded.pooled.metrics.steps, plain.pooled.metrics.steps);
    QCOMPARE(padded.pooled.metrics.histogram, plain.pooled.metrics.histogram);
}

void TestPaddedPair::samplingLeavesPaddingOut()
{
    const Decoder padded = openModel(m_padded);
    StopRule stop;
    stop.vocabulary.size = kVocabulary;
    stop.vocabulary.holes = torch::tensor(std::vector<std::int64_t>{0, 3});
    torch::Generator generator = seededGenerator(7, 1);
    const Continuation text =
        must(continuePrompt(m_job, padded, {1, 403}, 64, stop, {3.0}, &generator));
    for (const int id : text.ids) {
        QVERIFY(id < kVocabulary);
        QVERIFY(id != 0 && id != 3);
    }
}

void TestPaddedPair::tokenThatOneSideLacks()
{
    // Id 511 has another name, and so differs; without a name it is masked.
    const Tokenizer tokenizer = must(Tokenizer::open(stories()));
    const std::string last = *tokenizer.tokenOf(kVocabulary - 1);
    const std::string entry = nlohmann::json(last).dump() + ": 511";
    const fs::path other = writeTokenizer("other", entry.c_str(), "\"qqq\": 511");
    AcceptRequest request;
    request.target = stories();
    request.draft = other;
    request.settings.tasks = {m_root / "tales.jsonl"};
    request.compute.device = "cpu";
    const auto refused = measureAcceptance(m_job, request);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    for (const std::string& part : {std::string("id 511"), "'" + last + "'", std::string("'qqq'")})
        QVERIFY2(refused.error().message.find(part) != std::string::npos,
                 refused.error().message.c_str());
}

/// Masking the target's own end would let it talk for ever.
void TestPaddedPair::endThatTheDraftLacks()
{
    const fs::path target = m_root / "ending";
    fs::copy(m_padded, target);
    nlohmann::json tokenizer;
    std::ifstream(stories() / "tokenizer.json") >> tokenizer;
    tokenizer["added_tokens"].push_back(nlohmann::json::parse(
        R"({"id": 512, "content": "<|im_end|>", "special": true, "lstrip": false,
            "rstrip": false, "single_word": false, "normalized": false})"));
    std::ofstream(target / "tokenizer.json") << tokenizer.dump();
    AcceptRequest request;
    request.target = target;
    request.draft = stories();
    request.settings.tasks = {m_root / "tales.jsonl"};
    request.settings.maxNewTokens = 8;
    request.compute.device = "cpu";
    const auto outcome = measureAcceptance(m_job, request);
    QVERIFY2(outcome.ok(), outcome.ok() ? "" : outcome.error().text().c_str());
    QCOMPARE(outcome->warnings.size(), std::size_t{1});
    QVERIFY(outcome->warnings[0].find("id 512 '<|im_end|>'") != std::string::npos);
    fs::remove(target / "generation_config.json"); // its stop ids would win
    nlohmann::json config;
    std::ifstream(target / "config.json") >> config;
    config["eos_token_id"] = nlohmann::json::array({2, 512});
    std::ofstream(target / "config.json") << config.dump();
    const auto refused = measureAcceptance(m_job, request);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY2(refused.error().message.find("id 512 '<|im_end|>'") != std::string::npos,
             refused.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestPaddedPair)
#include "tst_padded_pair.moc"
