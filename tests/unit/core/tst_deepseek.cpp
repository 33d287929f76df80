// SPDX-License-Identifier: GPL-3.0-or-later
// The stock DeepSeek form of a block: the constant channel against its bounds, the stored tensors
// against DeepseekV2Attention written out, and what the layout refuses.
#include "core/export/deepseek_layout.h"
#include "core/model/constant_channel.h"
#include "tests/support/numeric.h"

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr int kHidden = 24, kHeads = 4, kRank = 7, kRopeDim = 4, kNopeDim = 6, kValueDim = 8;
constexpr int kWidth = kNopeDim + kRopeDim;

/// A TransMLA block with every bias; `upHeads` may be fewer than the query heads.
MlaBlock biasedBlock(torch::Generator& g, int upHeads = kHeads)
{
    const auto random = [&](torch::IntArrayRef shape) {
        return torch::randn(shape, g, torch::dtype(torch::kFloat32));
    };
    const auto weight = [&](int rows, int columns) {
        return random({rows, columns}) / std::sqrt(static_cast<double>(columns));
    };
    MlaBlock b;
    b.heads = kHeads;
    b.upHeads = upHeads;
    b.ropeKeyHeads = 1;
    b.nopeDim = kNopeDim;
    b.ropeDim = kRopeDim;
    b.vDim = kValueDim;
    b.rank = kRank;
    b.scale = 0.35;
    b.wq = weight(kHeads * kWidth, kHidden);
    b.wdkv = weight(kRank, kHidden);
    b.wkr = weight(kRopeDim, kHidden);
    b.wuk = weight(upHeads * kNopeDim, kRank);
    b.wuv = weight(upHeads * kValueDim, kRank);
    b.wo = weight(kHidden, kHeads * kValueDim);
    b.bq = random({kHeads * kWidth});
    b.bdkv = random({kRank});
    b.bkr = random({kRopeDim});
    b.buk = random({upHeads * kNopeDim});
    b.buv = random({upHeads * kValueDim});
    b.bo = random({kHidden});
    b.frequencies = torch::tensor({{1.0, 0.01}}, torch::kFloat64);
    return b;
}

/// Inputs whose first dim is 1, so that w = e_0 gives w.x = 1 exactly.
Tensor inputs(torch::Generator& g, int length = 21)
{
    Tensor x = torch::randn({3, length, kHidden}, g, torch::dtype(torch::kFloat32));
    x.select(2, 0).fill_(1);
    return x;
}

ConstantChannel exactChannel(const MlaBlock& block, const Tensor& x, double margin)
{
    ConstantChannel channel;
    channel.functional = torch::zeros({kHidden});
    channel.functional[0] = 1;
    channel.value = margin * torch::linear(x, block.wdkv).norm(2, {-1}).max().item<double>();
    return channel;
}

/// DeepseekV2Attention for one sequence x [T, d], in fp64 and complex numbers, from stored tensors.
Tensor stockAttention(const LayerTensors& tensors, const Tensor& wo, const Tensor& x, int rank)
{
    const auto get = [&](const std::string& name) {
        for (const auto& [key, tensor] : tensors)
            if (key == name)
                return tensor.to(torch::kFloat64);
        throw std::runtime_error(name + " is missing");
    };
    const auto length = x.size(0);
    const Tensor input = x.to(torch::kFloat64);
    const Tensor down = torch::linear(input, get("kv_a_proj_with_mqa.weight"));
    Tensor latent = down.narrow(1, 0, rank);
    latent =
        latent * torch::rsqrt(latent.pow(2).mean(1, true) + 1e-6) * get("kv_a_layernorm.weight");
    const Tensor up =
        torch::linear(latent, get("kv_b_proj.weight")).view({length, kHeads, kNopeDim + kValueDim});
    const Tensor q = torch::linear(input, get("q_proj.weight")).view({length, kHeads, kWidth});
    const Tensor frequencies = torch::tensor({1.0, 0.01}, torch::kFloat64);
    const Tensor angles = torch::arange(length, torch::kFloat64).unsqueeze(1) * frequencies;
    const Tensor turn = torch::polar(torch::ones_like(angles), angles);
    const auto rotated = [&](const Tensor& pairs) { // [T, n, d_r]
        const Tensor z =
            torch::view_as_complex(pairs.contiguous().view({length, -1, kRopeDim / 2, 2}));
        return torch::view_as_real(z * turn.unsqueeze(1)).flatten(2);
    };
    const Tensor qr = rotated(q.narrow(2, kNopeDim, kRopeDim));
    const Tensor kr = rotated(down.narrow(1, rank, kRopeDim).unsqueeze(1)).squeeze(1);
    Tensor scores =
        torch::einsum("thd,shd->hts", {q.narrow(2, 0, kNopeDim), up.narrow(2, 0, kNopeDim)}) +
        torch::einsum("thd,sd->hts", {qr, kr});
    scores = scores / std::sqrt(static_cast<double>(kWidth));
    const Tensor future = torch::ones({length, length}, torch::kBool).triu(1);
    const Tensor p = scores.masked_fill(future, -INFINITY).softmax(-1);
    const Tensor mixed =
        torch::einsum("hts,shd->thd", {p, up.narrow(2, kNopeDim, kValueDim)}).flatten(1);
    return torch::linear(mixed, wo.to(torch::kFloat64));
}

/// A TransMLA draft of a Llama: H = 4, G = 2, h = 16, d_r = 8.
ModelConfig plainDraft()
{
    ModelConfig config;
    config.modelType = "mla_draft";
    config.hiddenSize = 64;
    config.intermediateSize = 128;
    config.numHiddenLayers = 4;
    config.numAttentionHeads = 4;
    config.numKeyValueHeads = 2;
    config.headDim = 16;
    config.vocabSize = 512;
    config.maxPositionEmbeddings = 16384;
    config.tieWordEmbeddings = true;
    MlaConfig mla;
    mla.converter = "transmla";
    mla.latentRank = {40, 40, 40, 40};
    mla.qkRopeHeadDim = 8;
    mla.qkNopeHeadDim = 16;
    mla.vHeadDim = 16;
    mla.ropeKeyHeads = 1;
    mla.kvUpHeads = 4;
    mla.attentionScale = 0.25;
    mla.ropePairs.assign(4, {{0, 2, 4, 6}});
    config.mla = mla;
    return config;
}

} // namespace

class TestDeepseek : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void latentWithinItsBound();
    void blockEqualsTheBiasedOne();
    void sharedUpHeads();
    void outputBiasOutOfRange();
    void fitsTheConstant();
    void stockTensorsComputeTheSame();
    void fewerChannelsAreFilledUp();
    void planOfAPlainDraft();
    void planOfAnExactDraft();
    void thetaOfFirstPairs();
    void refusals_data();
    void refusals();
    void everyKeyIsWritten();
};

/// |c' - c| <= (|c|^2 / 2 C^2 + r' eps / 2 C^2) |c|, and the last channel is 1 within the same.
void TestDeepseek::latentWithinItsBound()
{
    torch::Generator g = seededGenerator(3, 0);
    const torch::NoGradGuard noGrad;
    const MlaBlock block = biasedBlock(g);
    const Tensor x = inputs(g);
    const ConstantChannel channel = exactChannel(block, x, 5);
    MlaBlock stock = must(withConstantChannel(block, channel, NopeKeyBias::Carry));
    stock.latentNormEps = 1e-3;
    QCOMPARE(stock.rank, kRank + 1);
    const Tensor latent = keysValues(stock, x).latent.to(torch::kFloat64);
    const Tensor c = torch::linear(x, block.wdkv).to(torch::kFloat64);
    const double squared = channel.value * channel.value;
    const Tensor bound = (c.pow(2).sum(-1) + stock.rank * stock.latentNormEps) / (2 * squared);
    QVERIFY(bound.max().item<double>() > 1e-3); // well above rounding
    const Tensor off = (latent.narrow(-1, 0, kRank) - c).norm(2, {-1});
    QVERIFY((off <= bound * c.norm(2, {-1}) + 1e-5).all().item<bool>());
    QVERIFY(((latent.select(-1, kRank) - 1).abs() <= bound + 1e-6).all().item<bool>());
}

/// With w.x = 1 nothing but the norm's curvature is left of the biases: a hundredth at ten times C.
void TestDeepseek::blockEqualsTheBiasedOne()
{
    torch::Generator g = seededGenerator(4, 0);
    const torch::NoGradGuard noGrad;
    const MlaBlock block = biasedBlock(g);
    const Tensor x = inputs(g);
    const Tensor expected = attend(block, x);
    const auto difference = [&](double margin, NopeKeyBias keys) {
        MlaBlock stock = must(withConstantChannel(block, exactChannel(block, x, margin), keys));
        for (const Tensor* bias :
             {&stock.bq, &stock.bdkv, &stock.bkr, &stock.buk, &stock.buv, &stock.bo})
            if (bias->defined())
                return 1.0;
        stock.latentNormEps = 1e-6;
        return relativeDifference(attend(stock, x), expected);
    };
    for (const NopeKeyBias keys : {NopeKeyBias::Drop, NopeKeyBias::Carry}) {
        const double coarse = difference(kConstantMargin, keys);
        const double fine = difference(300, keys);
        qInfo("relative difference at 30: %.2g, at 300: %.2g", coarse, fine);
        QVERIFY(coarse < 5e-3);
        QVERIFY(fine < 2e-5);
    }
}

void TestDeepseek::sharedUpHeads()
{
    torch::Generator g = seededGenerator(5, 0);
    const torch::NoGradGuard noGrad;
    const MlaBlock block = biasedBlock(g, 2);
    const Tensor x = inputs(g);
    QVERIFY(relativeDifference(attend(withUpHeads(block, kHeads), x), attend(block, x)) < 1e-6);
    MlaBlock stock =
        must(withConstantChannel(block, exactChannel(block, x, 300), NopeKeyBias::Drop));
    QVERIFY(relativeDifference(attend(stock, x), attend(block, x)) < 2e-5);
}

void TestDeepseek::outputBiasOutOfRange()
{
    torch::Generator g = seededGenerator(6, 0);
    MlaBlock block = biasedBlock(g);
    block.wo[3].zero_(); // nothing reaches this dim
    block.bo[3] = 1;
    const Tensor x = inputs(g);
    const auto refused = withConstantChannel(block, exactChannel(block, x, 30), NopeKeyBias::Drop);
    QVERIFY(!refused.ok());
    QVERIFY(refused.error().message.find("o_proj.bias") != std::string::npos);
}

void TestDeepseek::fitsTheConstant()
{
    torch::Generator g = seededGenerator(7, 0);
    const torch::NoGradGuard noGrad;
    const MlaBlock block = biasedBlock(g);
    Tensor x = inputs(g, 40);
    const Tensor mask = torch::ones({3, 40}, torch::kBool);
    const ConstantChannel exact = fitConstantChannel(block, x, mask, 1e-6);
    QVERIFY(exact.spread < 1e-3);
    QVERIFY((torch::matmul(x, exact.functional) - 1).abs().max().item<double>() < 1e-3);
    const double largest = torch::linear(x, block.wdkv).norm(2, {-1}).max().item<double>();
    QVERIFY(std::abs(exact.value / (30 * largest) - 1) < 1e-5);

    // Masked tokens count for nothing.
    Tensor part = mask.clone();
    part[1].narrow(0, 30, 10).fill_(false);
    Tensor spoilt = x.clone();
    spoilt[1].narrow(0, 30, 10).fill_(1e4);
    QVERIFY(fitConstantChannel(block, spoilt, part, 1e-6).spread < 1e-3);

    // eps of up to 1 changes less than 1e-6 of the latent: r' eps / 2 C^2.
    const ConstantChannel large = fitConstantChannel(block, x, mask, 1.0);
    QVERIFY(std::abs((kRank + 1) / (2 * large.value * large.value) / 1e-6 - 1) < 1e-6);

    // Without a constant direction the spread is that of the least-squares fit itself.
    x = torch::randn({3, 40, kHidden}, g, torch::dtype(torch::kFloat32));
    const ConstantChannel rough = fitConstantChannel(block, x, mask, 1e-6);
    const double measured =
        (torch::matmul(x, rough.functional) - 1).pow(2).mean().sqrt().item<double>();
    QVERIFY(std::abs(rough.spread - measured) < 1e-4);
}

void TestDeepseek::stockTensorsComputeTheSame()
{
    torch::Generator g = seededGenerator(8, 0);
    const torch::NoGradGuard noGrad;
    for (const int upHeads : {kHeads, 2}) {
        const MlaBlock block = biasedBlock(g, upHeads);
        const Tensor x = inputs(g);
        MlaBlock stock =
            must(withConstantChannel(block, exactChannel(block, x, 30), NopeKeyBias::Drop));
        stock.latentNormEps = 1e-6;
        const Tensor expected = attend(stock, x)[0];
        const LayerTensors tensors = stockTensors(stock, kRank + 1);
        for (const auto& [name, tensor] : tensors)
            QVERIFY2(!name.ends_with(".bias"), name.c_str());
        QVERIFY(relativeDifference(stockAttention(tensors, stock.wo, x[0], kRank + 1), expected) <
                2e-6);
    }
}

void TestDeepseek::fewerChannelsAreFilledUp()
{
    torch::Generator g = seededGenerator(9, 0);
    const torch::NoGradGuard noGrad;
    const MlaBlock block = biasedBlock(g);
    const Tensor x = inputs(g);
    MlaBlock stock =
        must(withConstantChannel(block, exactChannel(block, x, 30), NopeKeyBias::Drop));
    stock.latentNormEps = 1e-6;
    const LayerTensors tensors = stockTensors(stock, kRank + 5);
    const Tensor padded = stockAttention(tensors, stock.wo, x[0], kRank + 5);
    QVERIFY(relativeDifference(padded, attend(stock, x)[0]) < 2e-6);
}

void TestDeepseek::planOfAPlainDraft()
{
    const DeepseekPlan plan = must(planDeepseek(plainDraft(), "draft"));
    QVERIFY(!plan.exact);
    QVERIFY(!plan.loses.empty());
    QCOMPARE(plan.model.mla->latentRank, std::vector<int>(4, 42)); // even
    QCOMPARE(plan.model.cacheElements(0), std::int64_t{42 + 8});
    QCOMPARE(plan.model.rope.theta, 10000.0);
    ModelConfig ranks = plainDraft();
    ranks.mla->latentRank = {30, 44, 40, 20};
    QCOMPARE(must(planDeepseek(ranks, "draft")).model.mla->latentRank, std::vector<int>(4, 46));
}

void TestDeepseek::planOfAnExactDraft()
{
    const ModelConfig refined = withLatentNorm(plainDraft());
    QVERIFY(refined.mla->latentNorm);
    QCOMPARE(refined.mla->latentRank.front(), 41);
    const DeepseekPlan plan = must(planDeepseek(refined, "draft"));
    QVERIFY(plan.exact);
    QVERIFY(plan.loses.empty());
    QCOMPARE(plan.model.mla->latentRank.front(), 42);
    QVERIFY(withLatentNorm(refined) == refined);
}

/// Pairs 0..3 of 8 turn at theta^(-i/8): the stock head of 8 dims has them at theta' = theta^(1/2).
void TestDeepseek::thetaOfFirstPairs()
{
    ModelConfig draft = plainDraft();
    draft.mla->ropePairs.assign(4, {{0, 1, 2, 3}});
    QVERIFY(std::abs(must(planDeepseek(draft, "draft")).model.rope.theta - 100) < 1e-9);
    draft.mla->ropePairs[2] = {{0, 2, 4, 6}}; // another theta in one layer
    QVERIFY(!planDeepseek(draft, "draft").ok());
}

void TestDeepseek::refusals_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("named");
    QTest::newRow("rotary heads") << "heads"
                                  << "2 rotary key heads";
    QTest::newRow("llama3") << "llama3"
                            << "YaRN"; // case A5
    QTest::newRow("yarn") << "yarn"
                          << "YaRN";
    QTest::newRow("linear") << "linear"
                            << "YaRN";
    QTest::newRow("pairs") << "pairs"
                           << "frequencies";
    QTest::newRow("QK-norm") << "qk-norm"
                             << "normalises"; // case A4
    QTest::newRow("window") << "window"
                            << "sliding window";
    QTest::newRow("MLP bias") << "mlp-bias"
                              << "MLP";
    QTest::newRow("biases and norm") << "norm-and-bias"
                                     << "biases beside";
    QTest::newRow("wide values") << "values"
                                 << "wider";
    QTest::newRow("all rotary") << "all-rotary"
                                << "rotary";
}

void TestDeepseek::refusals()
{
    QFETCH(QString, kind);
    QFETCH(QString, named);
    ModelConfig draft = plainDraft();
    MlaConfig& mla = *draft.mla;
    if (kind == "heads") {
        mla.ropeKeyHeads = 2;
        mla.ropePairs.assign(4, {{0, 2, 4, 6}, {0, 2, 4, 6}});
    } else if (kind == "llama3" || kind == "yarn" || kind == "linear") {
        draft.rope.type = kind == "llama3" ? RopeType::Llama3
                          : kind == "yarn" ? RopeType::Yarn
                                           : RopeType::Linear;
        draft.rope.factor = 32;
    } else if (kind == "pairs") {
        mla.ropePairs.assign(4, {{0, 1, 5, 7}});
    } else if (kind == "qk-norm") {
        draft.qkNorm = true;
    } else if (kind == "window") {
        draft.slidingWindow = {0, 16, 0, 0};
    } else if (kind == "mlp-bias") {
        draft.mlpBias = true;
    } else if (kind == "norm-and-bias") {
        mla.latentNorm = mla.queryBias = true;
    } else if (kind == "values") {
        mla.vHeadDim = 25;
    } else {
        mla.qkNopeHeadDim = 0;
    }
    const auto refused = planDeepseek(draft, "some/draft");
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::BadInput); // exit 3
    QVERIFY2(refused.error().text().find(named.toStdString()) != std::string::npos,
             refused.error().text().c_str());
    QVERIFY(refused.error().text().find("some/draft") != std::string::npos);
}

/// Case A2: the values that stock loaders would default otherwise.
void TestDeepseek::everyKeyIsWritten()
{
    const DeepseekPlan plan = must(planDeepseek(plainDraft(), "draft"));
    const nlohmann::json config = deepseekConfig(plan.model, {{"pad_token_id", 3}});
    QVERIFY(config.at("model_type") == "deepseek_v2");
    QVERIFY(!config.contains("auto_map"));
    const std::map<std::string, int> expected = {{"first_k_dense_replace", 4},
                                                 {"num_key_value_heads", 4},
                                                 {"n_routed_experts", 1},
                                                 {"n_group", 1},
                                                 {"topk_group", 1},
                                                 {"kv_lora_rank", 42},
                                                 {"qk_nope_head_dim", 16},
                                                 {"qk_rope_head_dim", 8},
                                                 {"v_head_dim", 16},
                                                 {"pad_token_id", 3}};
    for (const auto& [key, value] : expected)
        QVERIFY2(config.at(key) == value, key.c_str());
    QVERIFY(config.at("q_lora_rank").is_null());
    QVERIFY(config.at("tie_word_embeddings") == false);
    QVERIFY(config.at("attention_bias") == false);
    QVERIFY(config.at("rope_parameters").at("rope_type") == "default");
    // It reads back as the model that was planned.
    const ModelConfig read = must(parseModelConfig(config, "config.json"));
    QVERIFY(read.mla->latentNorm);
    QCOMPARE(read.mla->latentRank, plan.model.mla->latentRank);
    QCOMPARE(read.mla->qkNopeHeadDim, 16);
    QCOMPARE(read.mla->latentNormEps, 1e-6);
    nlohmann::json experts = config;
    experts["first_k_dense_replace"] = 3; // the last layer would be a mixture of experts
    QVERIFY(!parseModelConfig(experts, "config.json").ok());
}

QTEST_APPLESS_MAIN(TestDeepseek)
#include "tst_deepseek.moc"
