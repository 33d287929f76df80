// SPDX-License-Identifier: GPL-3.0-or-later
// What a rank is predicted to lose, from the weights alone.
#include <cmath>

#include "tests/support/numeric.h"

#include "core/model/tensors.h"
#include "core/pipeline/weight_spectra.h"

#include <QTest>

using namespace mla;
using namespace mla::test;

class TestWeightSpectra : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void lossIsTheTailOfTheSquares();
    void valuesAreThoseOfTheStackedWeights();
    void layersAreSpread();
    void cancelled();
};

void TestWeightSpectra::lossIsTheTailOfTheSquares()
{
    const WeightSpectra one{{0}, {{4, 3}}};
    QCOMPARE(lostBeyondRank(one, 0), 1.0);
    QCOMPARE(lostBeyondRank(one, 1), 0.6); // sqrt(9 / 25)
    QCOMPARE(lostBeyondRank(one, 2), 0.0);
    QCOMPARE(lostBeyondRank({{0, 1}, {{4, 3}, {1, 0}}}, 1), 0.3);
    QVERIFY(std::isnan(lostBeyondRank({}, 1)));
}

void TestWeightSpectra::valuesAreThoseOfTheStackedWeights()
{
    JobContext job;
    const WeightSpectra spectra = must(weightSpectra(job, stories(), 5));
    QCOMPARE(spectra.layers, (std::vector<int>{0, 1, 2, 3, 4}));
    const Checkpoint checkpoint = must(Checkpoint::open(stories()));
    for (const int layer : spectra.layers) {
        const std::string prefix = "model.layers." + std::to_string(layer) + ".self_attn.";
        const torch::Tensor stacked =
            torch::cat({must(loadTensor(checkpoint, prefix + "k_proj.weight", torch::kFloat64)),
                        must(loadTensor(checkpoint, prefix + "v_proj.weight", torch::kFloat64))});
        // The best error of rank r, by its definition: what the truncated SVD leaves.
        const auto [u, s, vh] = torch::linalg_svd(stacked, false);
        const int rank = 20;
        const torch::Tensor best =
            torch::mm(u.narrow(1, 0, rank) * s.narrow(0, 0, rank), vh.narrow(0, 0, rank));
        const double error = ((stacked - best).norm() / stacked.norm()).item<double>();
        const WeightSpectra only{{layer}, {spectra.values[std::size_t(layer)]}};
        QVERIFY(std::abs(lostBeyondRank(only, rank) - error) <= 1e-9);
    }
}

void TestWeightSpectra::layersAreSpread()
{
    JobContext job;
    QCOMPARE(must(weightSpectra(job, stories(), 3)).layers, (std::vector<int>{0, 2, 4}));
    QCOMPARE(must(weightSpectra(job, stories(), 1)).layers, (std::vector<int>{0}));
    QCOMPARE(must(weightSpectra(job, stories(), 99)).layers.size(), std::size_t(5));
}

void TestWeightSpectra::cancelled()
{
    std::stop_source source;
    source.request_stop();
    JobContext job(source.get_token(), {});
    const auto spectra = weightSpectra(job, stories(), 3);
    QVERIFY(!spectra);
    QCOMPARE(spectra.error().code, ErrorCode::Cancelled);
}

QTEST_GUILESS_MAIN(TestWeightSpectra)
#include "tst_weight_spectra.moc"
