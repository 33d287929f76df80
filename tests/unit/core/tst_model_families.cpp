// SPDX-License-Identifier: GPL-3.0-or-later
// What each model_type means: defaults, biases, windows, head_dim.
#include "core/checkpoint/config_parts.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <QTemporaryDir>
#include <QtTest>

#include "core/checkpoint/checkpoint.h"

#include "tests/support/toy_config.h"

using namespace mla;
using namespace mla::test;

class TestModelFamilies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void absentKeysTakeTheFamilysDefaults()
    {
        // MistralConfig(), Qwen2Config() and Qwen3Config() of Transformers 5.19.
        const ModelConfig mistral = parsed({{"model_type", "mistral"}});
        QCOMPARE(mistral.vocabSize, 32000);
        QCOMPARE(mistral.intermediateSize, 14336);
        QCOMPARE(mistral.numKeyValueHeads, 8);
        QCOMPARE(mistral.headDim, 128);
        QCOMPARE(mistral.maxPositionEmbeddings, 131072);
        QCOMPARE(mistral.slidingWindow, std::vector<int>(32, 4096));
        QCOMPARE(mistral.bosTokenId, std::optional<int>(1));
        QCOMPARE(mistral.eosTokenIds, std::vector<int>{2});
        QVERIFY(!mistral.qkvBias && !mistral.outputBias && !mistral.qkNorm);
        for (const char* family : {"qwen2", "qwen3"}) {
            const ModelConfig qwen = parsed({{"model_type", family}});
            QCOMPARE(qwen.modelType, std::string(family));
            QCOMPARE(qwen.vocabSize, 151936);
            QCOMPARE(qwen.hiddenSize, 4096);
            QCOMPARE(qwen.intermediateSize, 22016);
            QCOMPARE(qwen.numKeyValueHeads, 32);
            QCOMPARE(qwen.headDim, 128);
            QCOMPARE(qwen.maxPositionEmbeddings, 32768);
            QCOMPARE(qwen.rmsNormEps, 1e-6);
            QCOMPARE(qwen.rope, RopeConfig{});
            QVERIFY(!qwen.bosTokenId && qwen.eosTokenIds.empty() && qwen.slidingWindow.empty());
            QCOMPARE(qwen.qkvBias, std::string(family) == "qwen2");
            QCOMPARE(qwen.qkNorm, std::string(family) == "qwen3");
            QVERIFY(!qwen.outputBias && !qwen.mlpBias && !qwen.tieWordEmbeddings);
        }
    }

    void familiesHaveTheirOwnBiases()
    {
        // Qwen2Attention always builds q, k and v with a bias and o without, whatever the key says.
        for (const bool key : {true, false}) {
            const ModelConfig qwen2 = parsed(family("qwen2", {{"attention_bias", key}}));
            QVERIFY(qwen2.qkvBias && !qwen2.outputBias);
            const ModelConfig qwen3 = parsed(family("qwen3", {{"attention_bias", key}}));
            QVERIFY(qwen3.qkvBias == key && qwen3.outputBias == key);
        }
        const ModelConfig llama = parsed(with(toy(), {{"attention_bias", true}}));
        QVERIFY(llama.qkvBias && llama.outputBias);
    }

    void slidingWindowsResolveAsInTransformers_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("changes");
        QTest::addColumn<std::vector<int>>("windows");
        const auto row = [](const char* model, const char* changes, std::vector<int> windows) {
            QTest::addRow("%s %s", model, changes) << model << changes << windows;
        };
        row("mistral", R"({})", {4096, 4096});
        row("mistral", R"({"sliding_window": null})", {});
        row("mistral", R"({"sliding_window": 7})", {7, 7});
        row("mistral",
            R"({"sliding_window": 7, "layer_types": ["sliding_attention", "sliding_attention"]})",
            {7, 7});
        row("llama", R"({"sliding_window": null, "layer_types": null})", {});
        row("llama", R"({"sliding_window": 7, "use_sliding_window": false})", {});
        row("llama", R"({"layer_types": ["full_attention", "full_attention"]})", {});
        for (const char* qwen : {"qwen2", "qwen3"}) {
            row(qwen, R"({"sliding_window": 7, "max_window_layers": 0})", {});
            row(qwen, R"({"use_sliding_window": false, "sliding_window": 7})", {});
            row(qwen, R"({"use_sliding_window": true})", {}); // max_window_layers is 28
            row(qwen, R"({"use_sliding_window": true, "max_window_layers": 1})", {0, 4096});
            row(qwen,
                R"({"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 0})",
                {7, 7});
            row(qwen,
                R"({"use_sliding_window": true, "sliding_window": null, "max_window_layers": 0})",
                {});
            row(qwen,
                R"({"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 0,
                    "layer_types": ["sliding_attention", "full_attention"]})",
                {7, 0}); // layer_types win
            row(qwen, R"({"layer_types": ["full_attention", "full_attention"]})", {});
        }
    }
    void slidingWindowsResolveAsInTransformers()
    {
        QFETCH(QString, model);
        QFETCH(QString, changes);
        QFETCH(std::vector<int>, windows);
        const ModelConfig config =
            parsed(family(model.toStdString(), json::parse(changes.toStdString())));
        QCOMPARE(config.slidingWindow, windows);
        QCOMPARE(config.window(0), windows.empty() ? 0 : windows[0]);
        QCOMPARE(config.window(1), windows.empty() ? 0 : windows[1]);
    }

    void headDimIsUsedAsGiven()
    {
        for (const char* name : {"mistral", "qwen2", "qwen3"})
            QCOMPARE(parsed(family(name, {{"head_dim", 32}})).headDim, 32);
        for (const char* name : {"mistral", "qwen2"}) {
            QCOMPARE(parsed(family(name, {{"head_dim", nullptr}})).headDim, 16);
            QCOMPARE(parsed(family(name, json::object())).headDim, 16);
        }
        QCOMPARE(parsed(family("qwen3", json::object())).headDim, 128);
        QCOMPARE(parsed(with(toy(), {{"head_dim", 32}})).headDim, 32);
        QCOMPARE(parsed(with(toy(), {{"head_dim", nullptr}})).headDim, 16);
        QCOMPARE(parsed(with(toy(), {{"num_key_value_heads", nullptr}})).numKeyValueHeads, 4);
        QCOMPARE(parsed(toy()).cacheElements(0), std::int64_t{2 * 2 * 16});
    }

    void tensorsDecideWhetherTheConfigIsRight_data()
    {
        QTest::addColumn<QString>("checkpoint");
        QTest::addColumn<QString>("changes");
        QTest::addColumn<QStringList>("names"); // empty: it opens
        const auto row = [](const char* checkpoint, const char* changes, const QStringList& names) {
            QTest::addRow("%s %s", checkpoint, changes) << checkpoint << changes << names;
        };
        // hidden 32, 4 heads and 2 KV heads of 16
        const QString q("model.layers.0.self_attn.q_proj.weight");
        row("wide-heads", R"({})", {});
        row("wide-heads", R"({"head_dim": null})", {q, "[64, 32]", "[32, 32]"});
        row("wide-heads", R"({"head_dim": 32})", {q, "[64, 32]", "[128, 32]"});
        row("qwen3", R"({"head_dim": 16})", {});
        row("qwen3", R"({"head_dim": 8})", {q, "[64, 32]", "[32, 32]"});
        row("qwen3", R"({"attention_bias": true})", {"q_proj.bias", "[64]"});
        row("mistral", R"({"head_dim": null})", {q, "[64, 32]", "[32, 32]"});
        // A checkpoint under another family's name lacks what that family has.
        row("wide-heads", R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]})",
            {"q_proj.bias", "[64]"});
        row("wide-heads", R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})",
            {"q_norm.weight", "[16]"});
    }
    void tensorsDecideWhetherTheConfigIsRight()
    {
        namespace fs = std::filesystem;
        QFETCH(QString, checkpoint);
        QFETCH(QString, changes);
        QFETCH(QStringList, names);
        const fs::path source =
            fs::path(MLA_TEST_DATA "/golden/data/tiny") / checkpoint.toStdString();
        const QTemporaryDir temporary;
        const fs::path copy = temporary.path().toStdString();
        fs::copy_file(source / "model.safetensors", copy / "model.safetensors");
        std::ifstream file(source / "config.json");
        std::ofstream(copy / "config.json")
            << with(json::parse(file), json::parse(changes.toStdString()));
        const auto opened = Checkpoint::open(copy);
        QCOMPARE(opened.ok(), names.empty());
        for (const QString& name : names)
            QVERIFY2(opened.error().message.find(name.toStdString()) != std::string::npos,
                     opened.error().message.c_str());
    }

    void refusesWhatAFamilyHasNot_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("changes");
        QTest::addColumn<QString>("names");
        const auto row = [](const char* model, const char* changes, const char* names) {
            QTest::addRow("%s %s", model, changes) << model << changes << names;
        };
        row("mistral", R"({"architectures": ["LlamaForCausalLM"]})", "LlamaForCausalLM");
        row("qwen3", R"({"architectures": ["Qwen2ForCausalLM"]})", "Qwen2ForCausalLM");
        row("mistral", R"({"attention_bias": true})", "attention_bias");
        row("mistral", R"({"sliding_window": 0})", "sliding_window");
        row("mistral", R"({"sliding_window": "7"})", "sliding_window");
        row("mistral", R"({"layer_types": ["full_attention", "sliding_attention"]})",
            "layer_types");
        row("mistral", R"({"sliding_window": null, "layer_types":
                ["sliding_attention", "sliding_attention"]})",
            "layer_types");
        row("mistral", R"({"num_key_value_heads": 3})", "num_key_value_heads");
        row("qwen3", R"({"head_dim": null})", "head_dim"); // no default to derive, as Transformers
        for (const char* model : {"mistral", "qwen2", "qwen3"})
            row(model, R"({"mlp_bias": true})", "mlp_bias");
        for (const char* model : {"qwen2", "qwen3"}) {
            row(model, R"({"use_sliding_window": null})", "use_sliding_window");
            row(model, R"({"use_sliding_window": true, "sliding_window": 0})", "sliding_window");
            row(model, R"({"max_window_layers": null})", "max_window_layers");
            row(model, R"({"layer_types": ["full_attention", "sliding_attention"]})",
                "layer_types"); // no window is given
            row(model, R"({"layer_types": ["full_attention", "linear_attention"]})",
                "linear_attention");
        }
    }
    void refusesWhatAFamilyHasNot()
    {
        QFETCH(QString, model);
        QFETCH(QString, changes);
        QFETCH(QString, names);
        const auto result = parseModelConfig(
            family(model.toStdString(), json::parse(changes.toStdString())), "config.json");
        QVERIFY(!result);
        QVERIFY2(result.error().message.find(names.toStdString()) != std::string::npos,
                 result.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestModelFamilies)
#include "tst_model_families.moc"
