// SPDX-License-Identifier: GPL-3.0-or-later
// Checkpoints that are broken, incomplete or hostile: each is refused at once, as bad input, with a
// message that names the file and the tensor or key.
#include "core/checkpoint/checkpoint.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using namespace mla;
using nlohmann::json;

namespace
{

fs::path golden(const std::string& name)
{
    return fs::path(MLA_TEST_DATA) / "golden/data" / name;
}

std::string readAll(const fs::path& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void writeAll(const fs::path& path, const std::string& text)
{
    std::ofstream(path, std::ios::binary) << text;
}

/// A safetensors file with this header and `data` zero bytes.
std::string safetensors(const std::string& header, std::size_t data)
{
    const std::uint64_t length = header.size();
    std::string text(sizeof length, '\0');
    std::memcpy(text.data(), &length, sizeof length);
    return text + header + std::string(data, '\0');
}

using Change = std::function<void(const fs::path&)>;

Change config(const json& patch)
{
    return [patch](const fs::path& dir) {
        json changed = json::parse(readAll(dir / "config.json"));
        changed.update(patch);
        writeAll(dir / "config.json", changed.dump());
    };
}

Change file(const std::string& name, const std::string& content)
{
    return [=](const fs::path& dir) { writeAll(dir / name, content); };
}

Change cutTo(const std::string& name, std::size_t bytes)
{
    return [=](const fs::path& dir) { fs::resize_file(dir / name, bytes); };
}

/// Replaces bytes of a file in place, so that its size and the offsets within stay.
Change replace(const std::string& name, const std::string& from, const std::string& to)
{
    return [=](const fs::path& dir) {
        std::string text = readAll(dir / name);
        const std::size_t place = text.find(from);
        if (place == std::string::npos || from.size() != to.size())
            qFatal("%s is not in %s", from.c_str(), name.c_str());
        writeAll(dir / name, text.replace(place, to.size(), to));
    };
}

struct Case {
    const char* label;
    const char* source; ///< below tests/golden/data
    Change change;
    const char* file;  ///< named in the error
    const char* named; ///< tensor, key or what is wrong
};

constexpr const char* weights = "model.safetensors";
constexpr const char* index = "model.safetensors.index.json";

std::vector<Case> safetensorsCases()
{
    const char* tiny = "tiny/llama3";
    return {
        {"huge header length", tiny,
         replace(weights, readAll(golden("tiny/llama3/model.safetensors")).substr(0, 8),
                 "\xFC\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
         weights, "header length"},
        {"shape against offsets", tiny,
         file(weights,
              safetensors(R"({"w":{"dtype":"F32","shape":[32,8],"data_offsets":[0,65536]}})",
                          65536)),
         weights, "'w'"},
        {"reversed offsets", tiny,
         file(weights, safetensors(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8)),
         weights, "'w'"},
        {"overflowing shape", tiny,
         file(weights,
              safetensors(
                  R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                  0)),
         weights, "'w'"},
        {"negative dimension", tiny,
         file(weights,
              safetensors(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
         weights, "'w'"},
        {"unknown dtype", tiny,
         file(weights, safetensors(R"({"w":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", 4)),
         weights, "'F4'"},
        {"not JSON", tiny, file(weights, safetensors("{\"w\":", 0)), weights, "not valid JSON"},
        {"empty file", tiny, file(weights, ""), weights, "0 bytes"},
        {"truncated", tiny, cutTo(weights, 20000), weights, "data section"},
        {"dtype of a weight", tiny, replace(weights, "\"dtype\":\"BF16\"", "\"dtype\":\"I16\" "),
         weights, "I16"},
        {"renamed tensor", tiny, replace(weights, "model.norm.weight", "model.norn.weight"), "",
         "'model.norm.weight'"},
        {"missing shard", "tiny/sharded",
         [](const fs::path& dir) { fs::remove(dir / "model-00002-of-00002.safetensors"); }, "",
         "model-00002-of-00002.safetensors is missing"},
        {"broken shard", "tiny/sharded", cutTo("model-00002-of-00002.safetensors", 3000),
         "model-00002-of-00002.safetensors", ""},
        {"shard outside", "tiny/sharded",
         file(index, R"({"weight_map":{"model.norm.weight":"../x.safetensors"}})"), index,
         "'model.norm.weight'"},
        {"no weights", tiny, [](const fs::path& dir) { fs::remove(dir / weights); }, "",
         "model.safetensors"},
        {"directory in place of weights", tiny,
         [](const fs::path& dir) {
             fs::remove(dir / weights);
             fs::create_directory(dir / weights);
         },
         weights, "not a regular file"},
    };
}

std::vector<Case> configCases()
{
    const char* tiny = "tiny/llama3";
    const char* name = "config.json";
    return {
        {"not JSON config", tiny, file(name, "{"), name, ""},
        {"no config", tiny, [](const fs::path& dir) { fs::remove(dir / "config.json"); }, "", name},
        {"model type", tiny, config({{"model_type", "gpt9"}}), name, "'gpt9'"},
        {"head_dim against tensors", tiny, config({{"head_dim", 32}}), weights, "q_proj"},
        {"negative size", tiny, config({{"hidden_size", -8}}), name, "hidden_size"},
        {"a million layers", tiny, config({{"num_hidden_layers", 1000000}}), name,
         "num_hidden_layers"},
        {"layers beyond the weights", tiny, config({{"num_hidden_layers", 4096}}), "",
         "model.layers.2."},
        {"rope type", tiny, config({{"rope_parameters", {{"rope_type", "spiral"}, {"factor", 2}}}}),
         name, "'spiral'"},
        {"activation", tiny, config({{"hidden_act", "gelu"}}), name, "hidden_act"},
        {"quantisation", tiny, config({{"quantization_config", {{"quant_method", "awq"}}}}), name,
         "'awq'"},
    };
}

std::vector<Case> storageCases()
{
    const char* gguf = "storage/llama3.gguf";
    const char* name = "llama3.gguf";
    const std::string key = "llama.embedding_length";
    const std::string typed = key + std::string("\x04\0\0\0\x20\0\0\0", 8);
    return {
        {"GGUF mark", gguf, replace(name, "GGUF", "GGUX"), name, "does not begin with"},
        {"GGUF truncated", gguf, cutTo(name, 30000), name, "data section"},
        {"GGUF header truncated", gguf, cutTo(name, 700), name, "reaches beyond the file"},
        {"GGUF architecture", gguf,
         replace(name, std::string("\x05\0\0\0\0\0\0\0llama", 13),
                 std::string("\x05\0\0\0\0\0\0\0mamba", 13)),
         name, "'mamba'"},
        {"GGUF key", gguf, replace(name, key, "llama.embedding_lengtg"), name,
         "'llama.embedding_length' is missing"},
        {"GGUF size", gguf, replace(name, typed, key + std::string("\x04\0\0\0\x40\0\0\0", 8)),
         name, "asks for"},
        {"GGUF tensor", gguf, replace(name, "blk.1.attn_k.weight", "blk.1.attn_z.weight"), "",
         "'model.layers.1.self_attn.k_proj.weight'"},
        {"GGUF rope divisors", gguf,
         [](const fs::path& dir) {
             std::string text = readAll(dir / "llama3.gguf");
             const float stored = 8, changed = 7.5F; // the factor of the slowest pairs
             const std::string from(reinterpret_cast<const char*>(&stored), 4);
             const std::size_t place = text.rfind(from + from);
             text.replace(place, 4, reinterpret_cast<const char*>(&changed), 4);
             writeAll(dir / "llama3.gguf", text);
         },
         name, "rope_freqs.weight"},
        {"FP8 without scales", "storage/fp8",
         replace(weights, "1.self_attn.q_proj.weight_scale_inv",
                 "1.self_attn.q_proj.weight_scale_iny"),
         weights, "'model.layers.1.self_attn.q_proj.weight_scale_inv' are missing"},
        {"FP8 of other blocks", "storage/fp8",
         config(
             {{"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {16, 16}}}}}),
         weights, "_scale_inv'"},
        {"FP8 without config", "storage/fp8", config({{"quantization_config", nullptr}}), weights,
         "F8_E4M3"},
        {"FP8 where it should not be", "storage/fp8",
         config({{"quantization_config",
                  {{"quant_method", "fp8"},
                   {"weight_block_size", {16, 12}},
                   {"modules_to_not_convert", {"model.layers.0.mlp.up_proj"}}}}}),
         weights, "'model.layers.0.mlp.up_proj'"},
    };
}

} // namespace

class TestMalformed : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void refusedAtOnce_data()
    {
        QTest::addColumn<int>("index");
        m_cases = safetensorsCases();
        for (auto more : {configCases(), storageCases()})
            m_cases.insert(m_cases.end(), more.begin(), more.end());
        for (std::size_t i = 0; i < m_cases.size(); ++i)
            QTest::newRow(m_cases[i].label) << static_cast<int>(i);
    }
    void refusedAtOnce()
    {
        QFETCH(int, index);
        const Case& tried = m_cases.at(static_cast<std::size_t>(index));
        const QTemporaryDir temporary;
        const fs::path dir = temporary.path().toStdString();
        const fs::path source = golden(tried.source);
        fs::copy(source, fs::is_directory(source) ? dir : dir / source.filename(),
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        QVERIFY2(Checkpoint::open(dir).ok(), "the unchanged checkpoint");
        tried.change(dir);

        QElapsedTimer timer;
        timer.start();
        const auto refused = Checkpoint::open(dir);
        const qint64 elapsed = timer.elapsed();
        QVERIFY(!refused);
        const std::string text = refused.error().text();
        QCOMPARE(refused.error().code, ErrorCode::BadInput); // exit 3
        QVERIFY2(text.starts_with((dir / tried.file).string()) ||
                     text.starts_with(dir.string() + ": "),
                 text.c_str());
        QVERIFY2(text.find(tried.file) != std::string::npos, text.c_str());
        QVERIFY2(text.find(tried.named) != std::string::npos, text.c_str());
        QVERIFY2(elapsed < 1000, std::to_string(elapsed).c_str());
    }

    void paddedHeaderLoads()
    {
        const QTemporaryDir temporary;
        const fs::path dir = temporary.path().toStdString();
        fs::copy(golden("tiny/llama3"), dir, fs::copy_options::recursive);
        const std::string whole = readAll(dir / weights);
        std::uint64_t length = 0;
        std::memcpy(&length, whole.data(), sizeof length);
        std::string header = whole.substr(sizeof length, length);
        header.resize(100000, ' ');
        writeAll(dir / weights, safetensors(header, 0) + whole.substr(sizeof length + length));
        QVERIFY(Checkpoint::open(dir).ok());
    }

    void nonFiniteNumbersAreLocated()
    {
        const auto checkpoint = Checkpoint::open(golden("tiny/llama3"));
        QVERIFY(checkpoint.ok());
        const std::string name = "model.layers.0.self_attn.k_proj.weight"; // [16, 32]
        std::vector<float> numbers(16 * 32);
        QVERIFY(checkpoint.value().readFloat32(name, numbers).ok());
        QVERIFY(checkpoint.value().requireFinite(name, numbers).ok());
        numbers[3 * 32 + 7] = std::numeric_limits<float>::quiet_NaN();
        numbers[500] = -std::numeric_limits<float>::infinity();
        const Status refused = checkpoint.value().requireFinite(name, numbers);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, ErrorCode::BadInput);
        const std::string text = refused.error().text();
        for (const char* part : {"model.safetensors", "k_proj.weight", "2 of 512", "[3, 7]"})
            QVERIFY2(text.find(part) != std::string::npos, text.c_str());
        QVERIFY(!checkpoint.value().readFloat32(name, std::span(numbers).first(5)));
    }

private:
    std::vector<Case> m_cases;
};

QTEST_APPLESS_MAIN(TestMalformed)
#include "tst_malformed.moc"
