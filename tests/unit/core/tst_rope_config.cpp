// SPDX-License-Identifier: GPL-3.0-or-later
// Rope parameters of both generations, and the frequencies that they give.
#include "core/checkpoint/config_parts.h"

#include <cmath>
#include <fstream>

#include <QtTest>

#include "tests/support/toy_config.h"

using namespace mla;
using namespace mla::test;

namespace
{

/// What Transformers' modeling_rope_utils gives for many configs (make_model_goldens.py).
json ropeGoldens()
{
    std::ifstream file(MLA_TEST_DATA "/golden/data/rope.json");
    return json::parse(file).at("rows");
}

} // namespace

class TestRopeConfig : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bothGenerationsGiveOneConfig()
    {
        json older = with(toy(), {{"rope_theta", 5e5}, {"torch_dtype", "bfloat16"}});
        older["rope_scaling"] = llama3Scaling();
        json newer = with(toy(), {{"dtype", "bfloat16"}});
        newer.erase("rope_theta");
        newer["rope_parameters"] = with(llama3Scaling(), {{"rope_theta", 5e5}});
        const ModelConfig config = parsed(newer);
        QCOMPARE(config, parsed(older));
        QCOMPARE(config.dtype, std::string("bfloat16"));
        QCOMPARE(config.rope.type, RopeType::Llama3);
        QCOMPARE(config.rope.theta, 5e5);
        QCOMPARE(config.rope.factor, 32.0);
        // The first releases called the type "type".
        json first = toy();
        first["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
        QCOMPARE(parsed(first).rope.type, RopeType::Linear);
        QCOMPARE(parsed(with(toy(), {{"rope_scaling", nullptr}})), parsed(toy()));
        // One set for all layer types is one rope.
        json typed = newer;
        typed["rope_parameters"] = {{"full_attention", newer["rope_parameters"]},
                                    {"sliding_attention", newer["rope_parameters"]}};
        QCOMPARE(parsed(typed), config);
    }

    void writesRopeForBothGenerations_data()
    {
        QTest::addColumn<int>("variant");
        int variant = 0;
        for (const char* name :
             {"default", "linear", "dynamic", "llama3", "yarn", "yarn, all keys"})
            QTest::newRow(name) << variant++;
    }
    void writesRopeForBothGenerations()
    {
        QFETCH(int, variant);
        const json scalings[] = {
            nullptr,
            {{"rope_type", "linear"}, {"factor", 2.5}},
            {{"rope_type", "dynamic"}, {"factor", 3.0}},
            llama3Scaling(),
            {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 512}},
            {{"rope_type", "yarn"},
             {"factor", 4.0},
             {"attention_factor", 1.75},
             {"beta_fast", 16},
             {"beta_slow", 2},
             {"truncate", false}}};
        const json source = with(toy(), {{"rope_theta", 7e5}, {"rope_scaling", scalings[variant]}});
        const RopeConfig rope = parsed(source).rope;
        // A base that says something else everywhere.
        json written = with(toy(), {{"original_max_position_embeddings", 99},
                                    {"rope_scaling", {{"type", "linear"}, {"factor", 9}}}});
        writeRope(rope, written);
        for (const auto& keys :
             {std::vector<const char*>{}, {"rope_parameters"}, {"rope_scaling", "rope_theta"}}) {
            json one = written;
            for (const char* key : keys)
                one.erase(key);
            QCOMPARE(parsed(one).rope, rope);
        }
    }

    void ropeMatchesTransformers_data()
    {
        QTest::addColumn<int>("index");
        const json rows = ropeGoldens();
        QCOMPARE(rows.size(), std::size_t{48});
        for (int i = 0; i < static_cast<int>(rows.size()); ++i)
            QTest::addRow("%d %s", i, rows[static_cast<std::size_t>(i)]["config"].dump().c_str())
                << i;
    }
    void ropeMatchesTransformers()
    {
        QFETCH(int, index);
        const json row = ropeGoldens().at(static_cast<std::size_t>(index));
        const RopeConfig rope = parsed(with(toy(), row["config"])).rope;
        QVERIFY(std::abs(rope.attentionFactor / row["attention_factor"].get<double>() - 1) < 1e-12);
        const std::int64_t length = row["length"].is_null() ? 0 : row["length"].get<int>();
        const std::vector<double> expected = row["inv_freq"];
        const std::vector<double> got = inverseFrequencies(rope, row["head_dim"], length);
        QCOMPARE(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) // theirs are fp32
            QVERIFY2(std::abs(got[i] / expected[i] - 1) < 3e-6,
                     qPrintable(QString("pair %1: %2").arg(i).arg(got[i] / expected[i] - 1)));
    }

    void inverseFrequenciesFollowTheirFormulas()
    {
        const std::vector<double> plain = inverseFrequencies({}, 16);
        QCOMPARE(plain.size(), std::size_t{8});
        for (int pair = 0; pair < 8; ++pair)
            QCOMPARE(plain[static_cast<std::size_t>(pair)], std::pow(10000.0, -pair / 8.0));
        RopeConfig linear;
        linear.type = RopeType::Linear;
        linear.factor = 4;
        QCOMPARE(inverseFrequencies(linear, 16)[3], std::pow(10000.0, -3 / 8.0) / 4);
    }

    void llama3FrequenciesMatchTransformers()
    {
        json config = with(toy(), {{"rope_theta", 5e5}, {"head_dim", 64}});
        config["rope_scaling"] = llama3Scaling();
        const std::vector<double> scaled = inverseFrequencies(parsed(config).rope, 64);
        for (int pair = 0; pair < 32; ++pair) {
            const double plain = std::pow(5e5, -pair / 32.0);
            const double value = scaled[static_cast<std::size_t>(pair)];
            if (pair <= 14)
                QCOMPARE(value, plain);
            else if (pair >= 18)
                QCOMPARE(value, plain / 32);
            else
                QVERIFY(value > plain / 32 && value < plain);
        }
        // Blended pairs as Transformers 5.19's _compute_llama3_parameters prints them (fp32).
        const double blended[] = {0.001290548, 0.00042955671, 9.7082862e-05};
        for (std::size_t i = 0; i < 3; ++i)
            QVERIFY(std::abs(scaled[15 + i] / blended[i] - 1) < 2e-6);
    }

    void ropeStretchesTheContext()
    {
        const auto context = [](const char* scaling, int maximum) {
            return parsed(with(toy(), {{"rope_scaling", json::parse(scaling)},
                                       {"max_position_embeddings", maximum}}))
                .contextLength();
        };
        QCOMPARE(context("null", 2048), 2048);
        QCOMPARE(context(R"({"type": "linear", "factor": 2.5})", 2048), 5120);
        QCOMPARE(context(R"({"type": "dynamic", "factor": 2})", 2048), 4096);
        QCOMPARE(context(R"({"type": "dynamic", "factor": 0.5})", 2048), 2048);
        QCOMPARE(context(R"({"type": "dynamic", "factor": 1e300})", 2048), 2147483647);
        // Qwen2.5 keeps 32768, others write the longer length.
        const char* yarn =
            R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768})";
        QCOMPARE(context(yarn, 32768), 131072);
        QCOMPARE(context(yarn, 131072), 131072);
        QCOMPARE(context(llama3Scaling().dump().c_str(), 131072), 131072);
    }

    void llama3ContextFallsBackAsInTransformers()
    {
        json config = with(toy(), {{"max_position_embeddings", 4096}});
        config["rope_scaling"] = llama3Scaling();
        config["rope_scaling"].erase("original_max_position_embeddings");
        QCOMPARE(parsed(config).rope.originalMaxPositionEmbeddings, 4096);
        config["original_max_position_embeddings"] = 2048;
        QCOMPARE(parsed(config).rope.originalMaxPositionEmbeddings, 2048);
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("changes");
        QTest::addColumn<QString>("names");
        const auto row = [](const char* changes, const char* names) {
            QTest::newRow(changes) << changes << names;
        };
        for (const char* type : {"longrope", "su", "mrope", "proportional", "Yarn"}) {
            const QString t(type);
            QTest::newRow(type)
                << QString(R"({"rope_scaling":{"rope_type":"%1","factor":2}})").arg(t) << t;
            QTest::addRow("%s v5", type)
                << QString(R"({"rope_parameters":{"rope_type":"%1","factor":2}})").arg(t) << t;
            QTest::addRow("%s first", type)
                << QString(R"({"rope_scaling":{"type":"%1","factor":2}})").arg(t) << t;
        }
        row(R"({"rope_scaling": {"factor": 2}})", "rope_scaling.rope_type");
        row(R"({"rope_scaling": {"rope_type": null, "factor": 2}})", "rope_scaling.rope_type");
        row(R"({"rope_scaling": {"type": "linear", "rope_type": "llama3", "factor": 2}})", "two");
        row(R"({"rope_scaling": {"rope_type": "linear"}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "linear", "factor": "2"}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "linear", "factor": 0}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 1}})",
            "rope_scaling.high_freq_factor");
        row(R"({"rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4,
                "high_freq_factor": 4}})",
            "rope_scaling.high_freq_factor");
        row(R"({"rope_scaling": "linear"})", "rope_scaling");
        row(R"({"rope_scaling": {"full_attention": {"rope_type": "default"},
                "sliding_attention": {"rope_type": "linear", "factor": 2}}})",
            "sliding_attention");
        row(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}, "factor": 2}})",
            "rope_parameters.factor");
        row(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}, "rope_theta": 1e6}})",
            "rope_parameters.rope_theta");
        row(R"({"rope_scaling": {"rope_type": "dynamic"}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "dynamic", "factor": null}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}, "head_dim": 2})",
            "head_dim");
        row(R"({"rope_scaling": {"rope_type": "yarn"}})", "rope_scaling.factor");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "attention_factor": 0}})",
            "rope_scaling.attention_factor");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "attention_factor": "1"}})",
            "rope_scaling.attention_factor");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_fast": -1}})",
            "rope_scaling.beta_fast");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_slow": "x"}})",
            "rope_scaling.beta_slow");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": 1}})",
            "rope_scaling.truncate");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": [1]}})",
            "rope_scaling.mscale");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2}, "rope_theta": 1})",
            "rope_theta");
        row(R"({"rope_scaling": {"rope_type": "yarn", "factor": 2,
                "original_max_position_embeddings": 0}})",
            "rope_scaling.original_max_position_embeddings");
    }
    void refuses()
    {
        QFETCH(QString, changes);
        QFETCH(QString, names);
        const auto result =
            parseModelConfig(with(toy(), json::parse(changes.toStdString())), "some/config.json");
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::BadInput);
        QVERIFY2(result.error().message.find(names.toStdString()) != std::string::npos,
                 result.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestRopeConfig)
#include "tst_rope_config.moc"
