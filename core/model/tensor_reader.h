// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/tensors.h"

namespace mla
{

/// Reads tensors of one module prefix into members as fp32, keeping the first error.
class TensorReader
{
public:
    TensorReader(const Checkpoint& checkpoint, std::string prefix, torch::Device device)
        : m_checkpoint(checkpoint), m_prefix(std::move(prefix)), m_device(device)
    {
    }
    void read(torch::Tensor& into, const std::string& name)
    {
        if (!m_status)
            return;
        Result<torch::Tensor> tensor =
            loadTensor(m_checkpoint, m_prefix + name, torch::kFloat32, m_device);
        if (tensor)
            into = std::move(tensor).value();
        else
            m_status = std::move(tensor).error();
    }
    void readIf(bool wanted, torch::Tensor& into, const std::string& name)
    {
        if (wanted)
            read(into, name);
    }
    Status status() { return std::move(m_status); }

private:
    const Checkpoint& m_checkpoint;
    std::string m_prefix;
    torch::Device m_device;
    Status m_status;
};

} // namespace mla
