// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity and KL against the formula on Transformers' logits, and on a model that knows nothing.
#include "core/evaluate/perplexity.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{
/// The demo checkpoint with every weight zero: its logits are equal for all tokens.
void writeIgnorant(const std::filesystem::path& directory)
{
    std::filesystem::create_directories(directory);
    std::filesystem::copy_file(stories() / "config.json", directory / "config.json");
    const Checkpoint source = must(Checkpoint::open(stories()));
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const ExpectedTensor& expected : expectedTensors(source.config())) {
        names.push_back(expected.name);
        tensors.push_back(torch::zeros(expected.shape));
    }
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < names.size(); ++i)
        views.push_back(viewOf(names[i], tensors[i]));
    must(writeSafetensors(directory / "model.safetensors", views));
}
} // namespace

class TestPerplexity : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void windows();
    void againstTransformers();
    void knowsNothing();
    void divergence();
    void workers();
    void refuses();

private:
    std::vector<std::vector<int>> m_texts; ///< of the golden logits
    Tensor m_log;                          ///< [B, T, V] their log-probabilities, fp64
    JobContext m_job;
};

void TestPerplexity::initTestCase()
{
    useOneThread();
    const Goldens golden("model_stories260K.safetensors");
    m_log = golden("logits").to(torch::kFloat64).log_softmax(-1);
    const Tensor ids = golden("input_ids", torch::kInt64);
    for (std::int64_t row = 0; row < ids.size(0); ++row) {
        m_texts.emplace_back();
        for (std::int64_t t = 0; t < ids.size(1); ++t)
            m_texts.back().push_back(ids[row][t].item<int>());
    }
}

void TestPerplexity::windows()
{
    const std::vector<int> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    QCOMPARE(disjointWindows(ids, 4), (TokenWindows{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
    QCOMPARE(disjointWindows(ids, 3), (TokenWindows{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
    QCOMPARE(disjointWindows(ids, 20), TokenWindows{ids});
    QVERIFY(disjointWindows({1}, 4).empty());
    QVERIFY(disjointWindows({}, 4).empty());
}

void TestPerplexity::againstTransformers()
{
    double nll = 0;
    std::int64_t tokens = 0;
    for (std::size_t b = 0; b < m_texts.size(); ++b)
        for (std::size_t t = 1; t < m_texts[b].size(); ++t, ++tokens)
            nll -=
                m_log[static_cast<std::int64_t>(b)][static_cast<std::int64_t>(t) - 1][m_texts[b][t]]
                    .item<double>();
    const double expected = std::exp(nll / static_cast<double>(tokens));
    const PredictionScore score =
        must(scoreWindows(m_job, openModel(stories()), nullptr, m_texts, 1));
    qInfo("perplexity %.6f, relative difference %.2g", score.perplexity,
          std::abs(score.perplexity / expected - 1));
    QCOMPARE(score.tokens, tokens);
    QVERIFY(std::abs(score.perplexity / expected - 1) < 1e-5);
    QCOMPARE(score.kl, 0.0);
}

void TestPerplexity::knowsNothing()
{
    const QTemporaryDir folder;
    const auto directory = std::filesystem::path(folder.path().toStdString()) / "zero";
    writeIgnorant(directory);
    const Decoder model = openModel(directory);
    const PredictionScore score = must(scoreWindows(m_job, model, nullptr, m_texts, 1));
    QVERIFY(std::abs(score.perplexity / 512 - 1) < 1e-6); // the vocabulary
}

/// KL(p || uniform) = log V - H(p), here over the positions that are scored.
void TestPerplexity::divergence()
{
    const QTemporaryDir folder;
    const auto directory = std::filesystem::path(folder.path().toStdString()) / "zero";
    writeIgnorant(directory);
    const Decoder reference = openModel(stories());
    const Tensor scored = m_log.narrow(1, 0, m_log.size(1) - 1);
    const double expected = std::log(512.0) + (scored.exp() * scored).sum(-1).mean().item<double>();
    const PredictionScore score =
        must(scoreWindows(m_job, openModel(directory), &reference, m_texts, 1));
    qInfo("KL %.6f, expected %.6f", score.kl, expected);
    QVERIFY(std::abs(score.kl / expected - 1) < 1e-5);
    const PredictionScore self = must(scoreWindows(m_job, reference, &reference, m_texts, 1));
    QCOMPARE(self.kl, 0.0);
}

void TestPerplexity::workers()
{
    const Decoder model = openModel(stories());
    TokenWindows many;
    for (int i = 0; i < 5; ++i)
        many.insert(many.end(), m_texts.begin(), m_texts.end());
    const PredictionScore one = must(scoreWindows(m_job, model, nullptr, many, 1));
    const PredictionScore three = must(scoreWindows(m_job, model, nullptr, many, 3));
    QCOMPARE(one.perplexity, three.perplexity); // the same bits
    QCOMPARE(one.tokens, three.tokens);
}

void TestPerplexity::refuses()
{
    const Decoder model = openModel(stories());
    for (const TokenWindows& windows :
         {TokenWindows{}, TokenWindows{{1, 512}}, TokenWindows{{1, -1}},
          TokenWindows{std::vector<int>(513, 5)}}) {
        const auto score = scoreWindows(m_job, model, nullptr, windows, 1);
        QVERIFY(!score.ok());
        QCOMPARE(score.error().code, ErrorCode::BadInput);
    }
}

QTEST_GUILESS_MAIN(TestPerplexity)
#include "tst_perplexity.moc"
