// SPDX-License-Identifier: GPL-3.0-or-later
// What numeric tests share: golden files, distances between tensors, loading a model. Torch comes
// in here, so include it before Qt.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/torch.h"
#include "core/model/decoder.h"
#include "core/model/tensors.h"

namespace mla::test
{

/// The value, or an exception (a failed test) that carries the error's text.
template <typename T>
T must(Result<T> result)
{
    if (!result)
        throw std::runtime_error(result.error().text());
    return std::move(result).value();
}
inline void must(const Status& status)
{
    if (!status)
        throw std::runtime_error(status.error().text());
}

inline std::filesystem::path goldenPath(const std::string& name)
{
    return std::filesystem::path(MLA_TEST_DATA) / "golden" / "data" / name;
}
inline nlohmann::json goldenJson(const std::string& name)
{
    std::ifstream in(goldenPath(name));
    return nlohmann::json::parse(in);
}

/// One golden safetensors file.
class Goldens
{
public:
    explicit Goldens(const std::string& name)
        : m_file(must(SafetensorsFile::open(goldenPath(name))))
    {
    }
    [[nodiscard]] torch::Tensor operator()(const std::string& name,
                                           torch::Dtype dtype = torch::kFloat32) const
    {
        return must(loadTensor(m_file, name, dtype));
    }
    [[nodiscard]] bool has(const std::string& name) const
    {
        return m_file.tensors().contains(name);
    }

private:
    SafetensorsFile m_file;
};

/// max |a - b|, infinite where shapes differ or a value is NaN.
inline double maxDifference(const torch::Tensor& a, const torch::Tensor& b)
{
    if (a.sizes() != b.sizes())
        return std::numeric_limits<double>::infinity();
    if (a.numel() == 0)
        return 0;
    const torch::Tensor difference = (a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs();
    return difference.isnan().any().item<bool>() ? std::numeric_limits<double>::infinity()
                                                 : difference.max().item<double>();
}
/// max |a - golden| / max |golden|
inline double relativeDifference(const torch::Tensor& a, const torch::Tensor& golden)
{
    return maxDifference(a, golden) / golden.abs().max().item<double>();
}
/// The same bits (NaN aside).
inline bool identical(const torch::Tensor& a, const torch::Tensor& b)
{
    return a.defined() == b.defined() && (!a.defined() || torch::equal(a, b));
}

inline Decoder openModel(const std::filesystem::path& directory)
{
    return must(Decoder::load(must(Checkpoint::open(directory))));
}
inline std::filesystem::path stories()
{
    return std::filesystem::path(MLA_RESOURCES) / "demo" / "stories260K";
}

} // namespace mla::test
