// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/model_config.h"

#include <fstream>

#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/toy_config.h"

using namespace mla;
using namespace mla::test;

namespace
{

/// A draft of TOY as MHA2MLA makes it: both KV heads keep four of eight rotary pairs.
ModelConfig draft()
{
    ModelConfig config = parsed(toy());
    config.modelType = "mla_draft";
    MlaConfig mla;
    mla.converter = "mha2mla";
    mla.latentRank = {24, 24};
    mla.qkRopeHeadDim = 8;
    mla.qkNopeHeadDim = 8;
    mla.vHeadDim = 16;
    mla.ropeKeyHeads = 2;
    mla.kvUpHeads = 2;
    mla.attentionScale = 0.25;
    mla.ropePairs = {{{0, 1, 2, 7}, {0, 3, 4, 5}}, {{4, 5, 6, 7}, {0, 1, 2, 3}}};
    mla.kvUpBias = true;
    config.mla = mla;
    return config;
}

} // namespace

class TestModelConfig : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void absentKeysTakeLlamaDefaults()
    {
        // LlamaConfig() of Transformers 5.19.
        const ModelConfig config = parsed({{"model_type", "llama"}});
        QCOMPARE(config.vocabSize, 32000);
        QCOMPARE(config.hiddenSize, 4096);
        QCOMPARE(config.intermediateSize, 11008);
        QCOMPARE(config.numHiddenLayers, 32);
        QCOMPARE(config.numAttentionHeads, 32);
        QCOMPARE(config.numKeyValueHeads, 32);
        QCOMPARE(config.headDim, 128);
        QCOMPARE(config.maxPositionEmbeddings, 2048);
        QCOMPARE(config.rmsNormEps, 1e-6);
        QCOMPARE(config.rope, RopeConfig{});
        QCOMPARE(config.bosTokenId, std::optional<int>(1));
        QCOMPARE(config.eosTokenIds, std::vector<int>{2});
        QVERIFY(!config.qkvBias && !config.outputBias && !config.mlpBias &&
                !config.tieWordEmbeddings);
        QVERIFY(config.dtype.empty());
        QVERIFY(!config.isMla() && !config.qkNorm && config.slidingWindow.empty());
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("changes");
        QTest::addColumn<QString>("names");
        const auto row = [](const char* changes, const char* names) {
            QTest::newRow(changes) << changes << names;
        };
        row(R"({"model_type": "qwen2"})", "LlamaForCausalLM"); // of another family
        row(R"({"model_type": "gemma2"})", "gemma2");
        row(R"({"model_type": "deepseek_v2"})", "kv_lora_rank"); // no latent
        row(R"({"sliding_window": 8})", "sliding_window");
        row(R"({"layer_types": ["full_attention", "sliding_attention"]})", "sliding_attention");
        row(R"({"layer_types": ["full_attention"]})", "layer_types");
        row(R"({"layer_types": "full_attention"})", "layer_types");
        row(R"({"layer_types": ["full_attention", "chunked_attention"]})", "chunked_attention");
        row(R"({"layer_types": ["full_attention", 2]})", "layer_types");
        row(R"({"model_type": null})", "model_type");
        row(R"({"architectures": ["MistralForCausalLM"]})", "MistralForCausalLM");
        row(R"({"architectures": ["LlamaModel"]})", "LlamaModel");
        row(R"({"architectures": "LlamaForCausalLM"})", "architectures");
        row(R"({"hidden_act": "gelu"})", "gelu");
        row(R"({"quantization_config": {"quant_method": "gptq"}})", "gptq");
        row(R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor");
        row(R"({"rope_theta": 0})", "rope_theta");
        row(R"({"rope_theta": "10000"})", "rope_theta");
        row(R"({"hidden_size": 0})", "hidden_size");
        row(R"({"hidden_size": -64})", "hidden_size");
        row(R"({"hidden_size": 64.0})", "hidden_size");
        row(R"({"hidden_size": "64"})", "hidden_size");
        row(R"({"hidden_size": null})", "hidden_size");
        row(R"({"hidden_size": 4294967360})", "hidden_size");
        row(R"({"hidden_size": 18446744073709551615})", "hidden_size");
        row(R"({"hidden_size": 66})", "hidden_size");
        row(R"({"head_dim": 15})", "head_dim");
        row(R"({"head_dim": 0})", "head_dim");
        row(R"({"num_hidden_layers": 1000000000})", "num_hidden_layers");
        row(R"({"num_key_value_heads": 3})", "num_key_value_heads");
        row(R"({"num_key_value_heads": 8})", "num_key_value_heads");
        row(R"({"attention_bias": 1})", "attention_bias");
        row(R"({"tie_word_embeddings": null})", "tie_word_embeddings");
        row(R"({"rms_norm_eps": -1e-5})", "rms_norm_eps");
        row(R"({"dtype": 16})", "dtype");
        row(R"({"eos_token_id": ["2"]})", "eos_token_id");
        row(R"({"bos_token_id": 256})", "bos_token_id");
    }
    void refuses()
    {
        QFETCH(QString, changes);
        QFETCH(QString, names);
        const auto result =
            parseModelConfig(with(toy(), json::parse(changes.toStdString())), "some/config.json");
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::BadInput);
        QCOMPARE(result.error().context, std::string("some/config.json"));
        QVERIFY2(result.error().message.find(names.toStdString()) != std::string::npos,
                 result.error().message.c_str());
    }

    void refusesWhatIsNoObject()
    {
        for (const char* text : {"[]", "3", "null", "\"llama\""})
            QVERIFY(!parseModelConfig(json::parse(text), "config.json"));
    }

    void stopIds()
    {
        QCOMPARE(parsed(with(toy(), {{"eos_token_id", {7, 9}}})).eosTokenIds,
                 (std::vector<int>{7, 9}));
        QVERIFY(parsed(with(toy(), {{"eos_token_id", nullptr}})).eosTokenIds.empty());
        QVERIFY(parsed(with(toy(), {{"eos_token_id", -1}})).eosTokenIds.empty());
        QCOMPARE(parsed(with(toy(), {{"bos_token_id", nullptr}})).bosTokenId, std::optional<int>());

        const QTemporaryDir temporary;
        const std::filesystem::path dir = temporary.path().toStdString();
        std::ofstream(dir / "config.json") << with(toy(), {{"eos_token_id", 7}});
        QCOMPARE(readModelConfig(dir)->eosTokenIds, std::vector<int>{7});
        std::ofstream(dir / "generation_config.json") << R"({"bos_token_id": 1})";
        QCOMPARE(readModelConfig(dir)->eosTokenIds, std::vector<int>{7});
        std::ofstream(dir / "generation_config.json") << R"({"eos_token_id": [3, 4]})";
        QCOMPARE(readModelConfig(dir)->eosTokenIds, (std::vector<int>{3, 4}));
        std::ofstream(dir / "generation_config.json") << "{";
        QVERIFY(!readModelConfig(dir));
    }

    void draftsReadBackAsWritten_data()
    {
        QTest::addColumn<int>("variant");
        int variant = 0;
        for (const char* name : {"uniform", "ranks per layer", "llama3 rope", "linear rope",
                                 "no nope part", "no tokens", "several stops", "yarn rope"})
            QTest::newRow(name) << variant++;
    }
    void draftsReadBackAsWritten()
    {
        QFETCH(int, variant);
        ModelConfig config = draft();
        json base = with(
            toy(), {{"rope_scaling", {{"type", "linear"}, {"factor", 9}}}, {"kept", "by name"}});
        if (variant == 1)
            config.mla->latentRank = {24, 16};
        if (variant == 2)
            config.rope = {RopeType::Llama3, 5e5, 32, 1, 4, 8192};
        if (variant == 3)
            config.rope = {RopeType::Linear, 1e6, 2, 1, 4, 8192};
        if (variant == 4) {
            config.mla->qkNopeHeadDim = 0;
            config.mla->qkRopeHeadDim = 16;
            const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
            config.mla->ropePairs = {{all, all}, {all, all}};
        }
        if (variant == 5) {
            config.bosTokenId.reset();
            config.eosTokenIds.clear();
        }
        if (variant == 6)
            config.eosTokenIds = {2, 5};
        if (variant == 7)
            config.rope = {RopeType::Yarn, 1e6, 4, 1, 4, 512, 1.25, 16, 2, false};
        config.dtype = variant == 0 ? "" : "float32";
        const json written = mlaConfigToJson(config, base);
        const auto read = parseModelConfig(json::parse(written.dump()), "config.json");
        QVERIFY2(read.ok(), read.ok() ? "" : read.error().text().c_str());
        QVERIFY(read.value() == config);
        QCOMPARE(written["kept"], "by name");
    }

    void draftKeysAreTheContract()
    {
        const json written = mlaConfigToJson(draft(), toy());
        QCOMPARE(written["model_type"], "mla_draft");
        QCOMPARE(written["architectures"], json({"MlaDraftForCausalLM"}));
        QCOMPARE(written["auto_map"]["AutoModelForCausalLM"],
                 "modeling_mla_draft.MlaDraftForCausalLM");
        QCOMPARE(written["latent_rank"], 24);
        QVERIFY(!written.contains("kv_lora_rank")); // that name switches vLLM to its own MLA path
        QCOMPARE(written["head_dim"], 16);          // d_n + d_r
        QCOMPARE(written["original_head_dim"], 16);
        QCOMPARE(written["num_key_value_heads"], 4);
        QCOMPARE(written["original_num_key_value_heads"], 2);
        QCOMPARE(draft().cacheElements(1), std::int64_t{24 + 2 * 8});
    }

    void refusesBrokenDrafts_data()
    {
        QTest::addColumn<QString>("changes");
        QTest::addColumn<QString>("names");
        const auto row = [](const char* changes, const char* names) {
            QTest::newRow(changes) << changes << names;
        };
        for (const char* key :
             {"latent_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "rope_key_heads",
              "kv_up_heads", "attention_scale", "rope_pairs", "query_bias", "kv_down_bias",
              "kv_up_bias", "converter", "original_head_dim", "original_num_key_value_heads"})
            QTest::addRow("%s missing", key) << QString("{\"%1\": null}").arg(key) << QString(key);
        row(R"({"latent_rank": 0})", "latent_rank");
        row(R"({"latent_rank": [24]})", "latent_rank");
        row(R"({"latent_rank": [24, "x"]})", "latent_rank");
        row(R"({"qk_rope_head_dim": 7})", "head_dim");
        row(R"({"qk_rope_head_dim": 32, "head_dim": 40})", "qk_rope_head_dim");
        row(R"({"head_dim": 20})", "head_dim");
        row(R"({"num_key_value_heads": 2})", "num_key_value_heads");
        row(R"({"rope_key_heads": 3})", "rope_key_heads");
        row(R"({"kv_up_heads": 3})", "kv_up_heads");
        row(R"({"original_num_key_value_heads": 3})", "original_num_key_value_heads");
        row(R"({"attention_scale": 0})", "attention_scale");
        row(R"({"query_bias": 1})", "query_bias");
        row(R"({"rope_pairs": []})", "[2][2][4]");
        row(R"({"rope_pairs": [[[0,1,2,3],[0,1,2,3]],[[0,1,2,3]]]})", "[2][2][4]");
        row(R"({"rope_pairs": [[[0,1,2,3],[0,1,2,3]],[[0,1,2,3],[0,1,2,8]]]})", "below 8");
        row(R"({"rope_pairs": [[[0,1,2,3],[0,1,2,3]],[[0,1,2,3],[0,1,2,-1]]]})", "below 8");
        row(R"({"architectures": ["LlamaForCausalLM"]})", "LlamaForCausalLM");
    }
    void refusesBrokenDrafts()
    {
        QFETCH(QString, changes);
        QFETCH(QString, names);
        const json config =
            with(mlaConfigToJson(draft(), toy()), json::parse(changes.toStdString()));
        const auto result = parseModelConfig(config, "config.json");
        QVERIFY(!result);
        QVERIFY2(result.error().message.find(names.toStdString()) != std::string::npos,
                 result.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestModelConfig)
#include "tst_model_config.moc"
