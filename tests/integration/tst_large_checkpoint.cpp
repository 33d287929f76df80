// SPDX-License-Identifier: GPL-3.0-or-later
// A checkpoint of the size of Llama-3.2-1B costs neither time nor memory to look at. The file is
// sparse, zeros that take no space; tests/support/write_random_checkpoint.py writes a full one,
// which MLA_LARGE_CHECKPOINT may name.
#include "core/checkpoint/checkpoint.h"

#include <fstream>

#include <QElapsedTimer>
#include <QTemporaryDir>

#include <nlohmann/json.hpp>

#include "tests/support/cli_program.h"

namespace fs = std::filesystem;
using namespace mla;
using namespace mla::test;

namespace
{

nlohmann::json llamaConfig()
{
    return {{"model_type", "llama"},   {"hidden_size", 2048},         {"intermediate_size", 8192},
            {"num_hidden_layers", 16}, {"num_attention_heads", 32},   {"num_key_value_heads", 8},
            {"head_dim", 64},          {"vocab_size", 128256},        {"rms_norm_eps", 1e-5},
            {"rope_theta", 500000.0},  {"tie_word_embeddings", true}, {"torch_dtype", "bfloat16"}};
}

void writeSparse(const fs::path& dir)
{
    std::ofstream(dir / "config.json") << llamaConfig();
    nlohmann::json header;
    std::uint64_t end = 0;
    for (const ExpectedTensor& tensor :
         expectedTensors(parseModelConfig(llamaConfig(), "config.json").value())) {
        std::uint64_t bytes = bytesPerElement(DType::BF16);
        for (const std::int64_t size : tensor.shape)
            bytes *= static_cast<std::uint64_t>(size);
        header[tensor.name] = {
            {"dtype", "BF16"}, {"shape", tensor.shape}, {"data_offsets", {end, end + bytes}}};
        end += bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    const fs::path file = dir / "model.safetensors";
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << text;
    out.close();
    fs::resize_file(file, sizeof length + length + end);
}

/// Anonymous memory of a running process in KiB; 0 once it has ended.
qint64 anonymousMemory(qint64 process)
{
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:"))
            return std::stoll(line.substr(8));
    return 0;
}

} // namespace

class TestLargeCheckpoint : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_path = qEnvironmentVariable("MLA_LARGE_CHECKPOINT").toStdString();
        if (m_path.empty()) {
            m_path = m_temporary.path().toStdString();
            writeSparse(m_path);
        }
    }

    void opensWithinASecond()
    {
        QElapsedTimer timer;
        timer.start();
        const auto checkpoint = Checkpoint::open(m_path);
        const qint64 elapsed = timer.elapsed();
        QVERIFY2(checkpoint.ok(), checkpoint.ok() ? "" : checkpoint.error().text().c_str());
        QCOMPARE(checkpoint.value().parameterCount(), std::int64_t{1'235'814'400}); // as published
        qInfo("opened in %lld ms", elapsed);
        QVERIFY(elapsed < 1000);
    }

    void inspectTakesLittleMemory()
    {
        QVERIFY2(QFile::exists(programPath()), "mla-draft is not built");
        QProcess process;
        process.start(programPath(), {"inspect", QString::fromStdString(m_path), "--json"});
        QVERIFY(process.waitForStarted());
        qint64 peak = 0;
        while (process.state() != QProcess::NotRunning) {
            peak = std::max(peak, anonymousMemory(process.processId()));
            process.waitForFinished(1); // milliseconds between two looks
        }
        QCOMPARE(process.exitCode(), 0);
        constexpr qint64 limit = 300 * 1024;
        qInfo("anonymous memory: %lld KiB at most", peak);
        QVERIFY(peak > 0 && peak < limit);
    }

private:
    QTemporaryDir m_temporary;
    fs::path m_path;
};

QTEST_APPLESS_MAIN(TestLargeCheckpoint)
#include "tst_large_checkpoint.moc"
