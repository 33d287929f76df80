// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <fstream>

#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using namespace mla;
using nlohmann::json;

namespace
{

json toyConfig(bool tied)
{
    return {{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"hidden_size", 64},
            {"intermediate_size", 128},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"vocab_size", 256},
            {"tie_word_embeddings", tied}};
}

/// Tensors of a checkpoint under construction: name -> (dtype, shape, bytes).
struct Stored {
    DType dtype = DType::F32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> data;
};
using Tensors = std::map<std::string, Stored>;

Stored filled(DType dtype, std::vector<std::int64_t> shape, int seed)
{
    Stored tensor{dtype, std::move(shape), {}};
    std::size_t bytes = bytesPerElement(dtype);
    for (const std::int64_t dim : tensor.shape)
        bytes *= static_cast<std::size_t>(dim);
    for (std::size_t i = 0; i < bytes; ++i)
        tensor.data.push_back(
            static_cast<std::byte>((i * 7 + static_cast<std::size_t>(seed)) % 60));
    return tensor;
}

Tensors tensorsOf(const json& config)
{
    Tensors tensors;
    int seed = 0;
    for (const ExpectedTensor& expected :
         expectedTensors(parseModelConfig(config, "config.json").value()))
        tensors[expected.name] = filled(DType::F32, expected.shape, seed++);
    return tensors;
}

void save(const fs::path& file, const Tensors& tensors)
{
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors)
        views.push_back({name, tensor.dtype, tensor.shape, tensor.data});
    QVERIFY(writeSafetensors(file, views).ok());
}

std::vector<std::int64_t> shapeOf(const ModelConfig& config, const std::string& name)
{
    for (const ExpectedTensor& tensor : expectedTensors(config))
        if (tensor.name == name)
            return tensor.shape;
    return {};
}

} // namespace

class TestCheckpoint : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_dir = m_temporary->path().toStdString();
    }

    void opensASingleFile()
    {
        write(toyConfig(false), tensorsOf(toyConfig(false)));
        const Checkpoint checkpoint = opened();
        QVERIFY(checkpoint.warnings().empty());
        QVERIFY(!checkpoint.tiedHead());
        // 2 layers of q, k, v, o, three MLP matrices and two norms; embedding, head, last norm.
        const std::int64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64;
        QCOMPARE(checkpoint.parameterCount(), 2 * layer + 2 * 256 * 64 + 64);
        QCOMPARE(checkpoint.names().size(), std::size_t{2 * 9 + 3});
        QCOMPARE(checkpoint.info("model.layers.1.self_attn.k_proj.weight")->shape,
                 (std::vector<std::int64_t>{32, 64}));
        QVERIFY(!checkpoint.info("absent"));
        QVERIFY(!checkpoint.bytes("absent"));
    }

    void opensTheDemoCheckpoint()
    {
        const auto checkpoint = Checkpoint::open(fs::path(MLA_RESOURCES) / "demo/stories260K");
        QVERIFY2(checkpoint.ok(), checkpoint.ok() ? "" : checkpoint.error().text().c_str());
        QCOMPARE(checkpoint.value().parameterCount(), std::int64_t{260'032}); // as published
        QVERIFY(checkpoint.value().tiedHead());
    }

    void namesMissingAndMisshapenTensors_data()
    {
        QTest::addColumn<QString>("tensor");
        for (const char* name :
             {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
              "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight",
              "model.layers.1.input_layernorm.weight"})
            QTest::newRow(name) << name;
    }
    void namesMissingAndMisshapenTensors()
    {
        QFETCH(QString, tensor);
        const std::string name = tensor.toStdString();
        const Tensors whole = tensorsOf(toyConfig(false));
        Tensors tensors = whole;
        tensors.erase(name);
        write(toyConfig(false), tensors);
        QVERIFY(refusal().find("'" + name + "'") != std::string::npos);

        tensors = whole;
        auto shape = whole.at(name).shape;
        shape.front() += 1;
        tensors[name] = filled(DType::F32, shape, 0);
        write(toyConfig(false), tensors);
        QVERIFY(refusal().find("'" + name + "' has shape") != std::string::npos);

        tensors[name] = filled(DType::F8E4M3, whole.at(name).shape, 0);
        write(toyConfig(false), tensors);
        QVERIFY(refusal().find("F8_E4M3") != std::string::npos);
    }

    void headDimIsCheckedAgainstTheTensors()
    {
        json config = toyConfig(false);
        write(config, tensorsOf(config));
        config["head_dim"] = 32;
        writeConfig(config);
        QVERIFY(refusal().find("q_proj") != std::string::npos);
        write(config, tensorsOf(config));
        QCOMPARE(opened().config().headDim, 32);
    }

    void missingPiecesAreNamed()
    {
        QVERIFY(refusal().find("config.json is missing") != std::string::npos);
        writeConfig(toyConfig(true));
        QVERIFY(refusal().find("model.safetensors") != std::string::npos);
        std::ofstream(m_dir / "pytorch_model.bin") << "x";
        QVERIFY(refusal().find(".bin files are not read") != std::string::npos);
        const auto nowhere = Checkpoint::open(m_dir / "nowhere");
        QVERIFY(!nowhere);
        QVERIFY(nowhere.error().text().find("no such directory") != std::string::npos);
        QVERIFY(!Checkpoint::open(m_dir / "config.json"));
    }

    void shardsFollowTheIndex()
    {
        writeSharded();
        const Checkpoint sharded = opened();
        QVERIFY(sharded.warnings().empty());
        const std::string print = sharded.fingerprint().value();
        // Strays are noticed and not merged: neither files nor tensors.
        Tensors other = {{"model.norm.weight", filled(DType::F32, {64}, 9)}};
        save(m_dir / "stray.safetensors", other);
        QCOMPARE(opened().warnings().size(), std::size_t{1});
        QVERIFY(opened().warnings().front().find("stray.safetensors") != std::string::npos);
        QCOMPARE(opened().fingerprint().value(), print);
        // The same tensors in one file are the same checkpoint.
        fs::remove(m_dir / "model.safetensors.index.json");
        save(m_dir / "model.safetensors", tensorsOf(toyConfig(false)));
        QCOMPARE(opened().fingerprint().value(), print);
    }

    void missingShardAndTensorAreNamed()
    {
        writeSharded();
        fs::rename(m_dir / "model-2.safetensors", m_dir / "aside");
        QVERIFY(refusal().find("shard model-2.safetensors is missing") != std::string::npos);
        save(m_dir / "model-2.safetensors", {});
        QVERIFY(refusal().find("is missing in model-2.safetensors") != std::string::npos);
        fs::rename(m_dir / "aside", m_dir / "model-2.safetensors");
        QVERIFY(opened().warnings().empty());
        fs::resize_file(m_dir / "model-2.safetensors", 4000);
        QVERIFY(refusal().find("model-2.safetensors") != std::string::npos);
    }

    void unlistedTensorsOfAShardAreNoticed()
    {
        writeSharded(true);
        QCOMPARE(opened().warnings().size(), std::size_t{1});
        QVERIFY(opened().warnings().front().find("extra in model-1.safetensors") !=
                std::string::npos);
        QVERIFY(!opened().has("extra"));
    }

    void indexMayNotLeaveTheDirectory_data()
    {
        QTest::addColumn<QString>("file");
        for (const char* name : {"../x.safetensors", "/etc/passwd", "", "..", "a/b.safetensors"})
            QTest::newRow(name) << name;
    }
    void indexMayNotLeaveTheDirectory()
    {
        QFETCH(QString, file);
        writeConfig(toyConfig(false));
        std::ofstream(m_dir / "model.safetensors.index.json")
            << json{{"weight_map", {{"model.norm.weight", file.toStdString()}}}};
        QVERIFY(refusal().find("model.norm.weight") != std::string::npos);
    }

    void brokenIndexIsRefused()
    {
        writeConfig(toyConfig(false));
        for (const char* text :
             {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {\"a\": 1}}"}) {
            std::ofstream(m_dir / "model.safetensors.index.json") << text;
            QVERIFY(refusal().find("index.json") != std::string::npos);
        }
    }

    void headIsResolvedFromFlagAndTensors()
    {
        Tensors tensors = tensorsOf(toyConfig(true));
        QVERIFY(!tensors.contains("lm_head.weight"));
        write(toyConfig(true), tensors);
        QVERIFY(opened().tiedHead());
        const std::int64_t tiedCount = opened().parameterCount();

        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
        write(toyConfig(true), tensors); // an equal copy
        QVERIFY(opened().tiedHead());
        QVERIFY(opened().warnings().empty());
        QCOMPARE(opened().parameterCount(), tiedCount);

        tensors["lm_head.weight"].data.back() = std::byte{99};
        write(toyConfig(true), tensors); // Transformers 5.19 does not tie them either
        const Checkpoint different = opened();
        QVERIFY(!different.tiedHead());
        QVERIFY(!different.config().tieWordEmbeddings);
        QCOMPARE(different.warnings().size(), std::size_t{1});
        QCOMPARE(different.parameterCount(), tiedCount + 256 * 64);
    }

    void unusedTensorsAreNoticed()
    {
        Tensors tensors = tensorsOf(toyConfig(true));
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = filled(DType::F32, {8}, 0);
        write(toyConfig(true), tensors);
        QVERIFY(opened().warnings().empty());
        tensors["model.layers.0.self_attn.k_proj.bias"] = filled(DType::F32, {32}, 0);
        write(toyConfig(true), tensors);
        QCOMPARE(opened().warnings().size(), std::size_t{1});
        QVERIFY(opened().warnings().front().find("k_proj.bias") != std::string::npos);
    }

    void fingerprintSeesNamesAndValues()
    {
        Tensors tensors = tensorsOf(toyConfig(true));
        write(toyConfig(true), tensors);
        const std::string before = opened().fingerprint().value();
        QCOMPARE(before.size(), std::size_t{64});
        QCOMPARE(opened().fingerprint().value(), before);
        tensors["model.norm.weight"].data.front() = std::byte{200};
        write(toyConfig(true), tensors);
        QVERIFY(opened().fingerprint().value() != before);
    }

    void biasesAreExpectedByFlag()
    {
        json config = toyConfig(true);
        config["attention_bias"] = true;
        config["mlp_bias"] = true;
        const ModelConfig model = parseModelConfig(config, "config.json").value();
        const std::string layer = "model.layers.1.";
        QCOMPARE(shapeOf(model, layer + "self_attn.q_proj.bias"), std::vector<std::int64_t>{64});
        QCOMPARE(shapeOf(model, layer + "self_attn.v_proj.bias"), std::vector<std::int64_t>{32});
        QCOMPARE(shapeOf(model, layer + "self_attn.o_proj.bias"), std::vector<std::int64_t>{64});
        QCOMPARE(shapeOf(model, layer + "mlp.down_proj.bias"), std::vector<std::int64_t>{64});
    }

    void draftTensors()
    {
        using Shape = std::vector<std::int64_t>;
        ModelConfig model = parseModelConfig(toyConfig(true), "config.json").value();
        MlaConfig mla;
        mla.latentRank = {24, 20};
        mla.qkRopeHeadDim = 8;
        mla.qkNopeHeadDim = 12;
        mla.vHeadDim = 16;
        mla.ropeKeyHeads = 2;
        mla.kvUpHeads = 4;
        mla.kvDownBias = true;
        model.mla = mla;
        const std::string attention = "model.layers.1.self_attn.";
        QCOMPARE(shapeOf(model, attention + "q_proj.weight"), (Shape{4 * (12 + 8), 64}));
        QCOMPARE(shapeOf(model, attention + "kv_a_proj_with_mqa.weight"), (Shape{20 + 2 * 8, 64}));
        QCOMPARE(shapeOf(model, attention + "kv_a_proj_with_mqa.bias"), (Shape{20 + 2 * 8}));
        QCOMPARE(shapeOf(model, attention + "kv_b_proj.weight"), (Shape{4 * (12 + 16), 20}));
        QCOMPARE(shapeOf(model, attention + "o_proj.weight"), (Shape{64, 4 * 16}));
        QVERIFY(shapeOf(model, attention + "kv_b_proj.bias").empty());
        QVERIFY(shapeOf(model, attention + "q_proj.bias").empty());
        QVERIFY(shapeOf(model, attention + "k_proj.weight").empty());
    }

private:
    void writeConfig(const json& config) const { std::ofstream(m_dir / "config.json") << config; }
    void write(const json& config, const Tensors& tensors) const
    {
        writeConfig(config);
        save(m_dir / "model.safetensors", tensors);
    }
    /// TOY in two shards with an index; `extra` adds a tensor that the index does not list.
    void writeSharded(bool extra = false) const
    {
        Tensors first;
        Tensors second;
        json map = json::object();
        for (auto& [name, tensor] : tensorsOf(toyConfig(false))) {
            const bool toFirst = name < "model.layers.1";
            (toFirst ? first : second)[name] = tensor;
            map[name] = toFirst ? "model-1.safetensors" : "model-2.safetensors";
        }
        if (extra)
            first["extra"] = filled(DType::F32, {1}, 0);
        writeConfig(toyConfig(false));
        save(m_dir / "model-1.safetensors", first);
        save(m_dir / "model-2.safetensors", second);
        std::ofstream(m_dir / "model.safetensors.index.json") << json{{"weight_map", map}};
    }
    [[nodiscard]] Checkpoint opened() const
    {
        auto checkpoint = Checkpoint::open(m_dir);
        if (!checkpoint)
            qFatal("%s", checkpoint.error().text().c_str());
        return std::move(checkpoint).value();
    }
    /// The error of opening the directory; empty if it opened.
    [[nodiscard]] std::string refusal() const
    {
        const auto checkpoint = Checkpoint::open(m_dir);
        return checkpoint ? std::string() : checkpoint.error().text();
    }
    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_dir;
};

QTEST_APPLESS_MAIN(TestCheckpoint)
#include "tst_checkpoint.moc"
