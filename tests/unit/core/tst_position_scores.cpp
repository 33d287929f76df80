// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity and KL by position: against Transformers' logits, and against the whole text's.
#include "core/evaluate/position_scores.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

/// The demo checkpoint with its output head scaled: same states, other probabilities.
Decoder scaledStories(const std::filesystem::path& directory, double scale)
{
    std::filesystem::create_directories(directory);
    std::filesystem::copy_file(stories() / "config.json", directory / "config.json");
    const Checkpoint source = must(Checkpoint::open(stories()));
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const std::string& name : source.names()) {
        Tensor t = must(loadTensor(source, name));
        tensors.emplace_back(name, name == "model.norm.weight" ? t * scale : t);
    }
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors)
        views.push_back(viewOf(name, tensor));
    must(writeSafetensors(directory / "model.safetensors", views));
    return openModel(directory);
}

} // namespace

class TestPositionScores : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void bounds();
    void againstTransformers();
    void weightedMeanIsTheWhole();
    void equalModels();
    void workers();
    void refuses();

private:
    std::vector<int> m_ids; ///< of the first golden text
    Tensor m_log;           ///< [T, V] its log-probabilities, fp64
    TokenWindows m_long;    ///< windows that reach several buckets
    JobContext m_job;
};

void TestPositionScores::initTestCase()
{
    useOneThread();
    const Goldens golden("model_stories260K.safetensors");
    m_log = golden("logits").to(torch::kFloat64)[0].log_softmax(-1);
    const Tensor ids = golden("input_ids", torch::kInt64)[0];
    for (std::int64_t t = 0; t < ids.size(0); ++t)
        m_ids.push_back(ids[t].item<int>());
    for (const std::size_t length : {200, 33, 300, 2, 1}) {
        std::vector<int> window;
        while (window.size() < length)
            window.push_back(m_ids[window.size() % m_ids.size()]);
        m_long.push_back(std::move(window));
    }
}

void TestPositionScores::bounds()
{
    const auto ends = [](int position) {
        const PositionBucket bucket = emptyBucketAt(position);
        return std::pair{bucket.first, bucket.last};
    };
    for (const int position : {0, 1, 31})
        QCOMPARE(ends(position), (std::pair{0, 31}));
    QCOMPARE(ends(32), (std::pair{32, 63}));
    QCOMPARE(ends(63), (std::pair{32, 63}));
    QCOMPARE(ends(64), (std::pair{64, 127}));
    QCOMPARE(ends(1023), (std::pair{512, 1023}));
    QCOMPARE(ends(1024), (std::pair{1024, 2047}));
    QCOMPARE(ends(2047), (std::pair{1024, 2047}));
}

/// Sum over the positions of a bucket of the golden -log p and, for logits z and s z, of
/// KL(p || q) = sum p (log p - log q).
void TestPositionScores::againstTransformers()
{
    const QTemporaryDir folder;
    const double scale = 0.5;
    const Decoder original = openModel(stories());
    const Decoder draft =
        scaledStories(std::filesystem::path(folder.path().toStdString()) / "half", scale);
    const auto buckets = must(scorePositions(m_job, original, draft, {m_ids}, 1));
    const Tensor other = (scale * m_log).log_softmax(-1); // logits up to a constant
    const std::int64_t scored = std::ssize(m_ids) - 1;
    std::size_t at = 0;
    for (std::int64_t first = 0; first < scored; ++at) {
        const std::int64_t last =
            std::min<std::int64_t>(emptyBucketAt(static_cast<int>(first)).last, scored - 1);
        double nll = 0, draftNll = 0, kl = 0;
        for (std::int64_t t = first; t <= last; ++t) {
            const int next = m_ids[static_cast<std::size_t>(t) + 1];
            nll -= m_log[t][next].item<double>();
            draftNll -= other[t][next].item<double>();
            kl += (m_log[t].exp() * (m_log[t] - other[t])).sum().item<double>();
        }
        const auto n = static_cast<double>(last - first + 1);
        QVERIFY(at < buckets.size());
        const PositionBucket& bucket = buckets[at];
        QCOMPARE(bucket.first, static_cast<int>(first));
        QCOMPARE(bucket.tokens, last - first + 1);
        QVERIFY(std::abs(bucket.originalPerplexity / std::exp(nll / n) - 1) < 1e-5);
        QVERIFY(std::abs(bucket.perplexity / std::exp(draftNll / n) - 1) < 1e-5);
        QVERIFY(std::abs(bucket.kl / (kl / n) - 1) < 1e-4);
        first = last + 1;
    }
    QCOMPARE(at, buckets.size());
}

void TestPositionScores::weightedMeanIsTheWhole()
{
    const QTemporaryDir folder;
    const Decoder original = openModel(stories());
    const Decoder draft =
        scaledStories(std::filesystem::path(folder.path().toStdString()) / "s", 0.7);
    const auto buckets = must(scorePositions(m_job, original, draft, m_long, 2));
    std::vector<int> firsts;
    std::vector<std::int64_t> tokens;
    double nll = 0, kl = 0, all = 0;
    for (const PositionBucket& bucket : buckets) {
        firsts.push_back(bucket.first);
        tokens.push_back(bucket.tokens);
        const auto n = static_cast<double>(bucket.tokens);
        nll += n * std::log(bucket.perplexity);
        kl += n * bucket.kl;
        all += n;
    }
    // Predictions: 199, 32, 299 and 1 of windows of 200, 33, 300 and 2 tokens; none of one token.
    QCOMPARE(firsts, (std::vector<int>{0, 32, 64, 128, 256}));
    QCOMPARE(tokens, (std::vector<std::int64_t>{97, 64, 128, 71 + 128, 43}));
    const PredictionScore whole = must(scoreWindows(m_job, draft, &original, m_long, 1));
    QCOMPARE(static_cast<double>(whole.tokens), all);
    QVERIFY(std::abs(std::exp(nll / all) / whole.perplexity - 1) < 1e-9);
    QVERIFY(std::abs(kl / all / whole.kl - 1) < 1e-9);
    const PositionBucket sum = pooled(buckets);
    QCOMPARE(sum.tokens, whole.tokens);
    QCOMPARE(sum.last, 511);
    QVERIFY(std::abs(sum.perplexity / whole.perplexity - 1) < 1e-9);
    QVERIFY(std::abs(sum.kl / whole.kl - 1) < 1e-9);
}

void TestPositionScores::equalModels()
{
    const Decoder model = openModel(stories());
    for (const PositionBucket& bucket : must(scorePositions(m_job, model, model, m_long, 1))) {
        QCOMPARE(bucket.kl, 0.0);
        QCOMPARE(bucket.perplexity, bucket.originalPerplexity);
    }
}

void TestPositionScores::workers()
{
    const Decoder model = openModel(stories());
    const auto one = must(scorePositions(m_job, model, model, m_long, 1));
    const auto three = must(scorePositions(m_job, model, model, m_long, 3));
    QCOMPARE(one.size(), three.size());
    for (std::size_t i = 0; i < one.size(); ++i)
        QCOMPARE(one[i].perplexity, three[i].perplexity); // the same bits
}

void TestPositionScores::refuses()
{
    const Decoder model = openModel(stories());
    const auto codeOf = [&](const TokenWindows& windows) {
        const auto scores = scorePositions(m_job, model, model, windows, 1);
        return scores.ok() ? std::string("accepted") : scores.error().message;
    };
    const auto contains = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    QVERIFY(contains(codeOf({std::vector<int>(kMostPositions + 1, 5)}), "up to 2048"));
    QVERIFY(contains(codeOf({std::vector<int>(513, 5)}), "exceed the context"));
    QVERIFY(contains(codeOf({{1, 512}}), "outside the vocabulary"));
    QVERIFY(contains(codeOf({{1}}), "nothing to score"));
    QVERIFY(contains(codeOf({}), "nothing to score"));
}

QTEST_GUILESS_MAIN(TestPositionScores)
#include "tst_position_scores.moc"
