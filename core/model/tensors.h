// SPDX-License-Identifier: GPL-3.0-or-later
// Between files and tensors, and the compute environment that keeps results reproducible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/base/torch.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"

namespace mla
{

/// A copy of a stored tensor as `dtype` on `device`, decoded if it is quantised. NaN and infinities
/// are BadInput: a model that holds any computes nothing of use. Not looked for in a copy in the
/// stored dtype unless that is fp32: such copies are written out again, not computed with.
Result<torch::Tensor> loadTensor(const Checkpoint& checkpoint, const std::string& name,
                                 torch::Dtype dtype = torch::kFloat32,
                                 torch::Device device = torch::kCPU);
Result<torch::Tensor> loadTensor(const SafetensorsFile& file, const std::string& name,
                                 torch::Dtype dtype, torch::Device device = torch::kCPU);

/// A view for writing; `tensor` must be contiguous, on the CPU, and outlive the view.
TensorView viewOf(const std::string& name, const torch::Tensor& tensor);
DType dtypeOf(torch::Dtype dtype);
torch::Dtype torchDtype(DType dtype);

/// "auto", "cpu", "cuda", "cuda:N". Loads libtorch_cuda when a GPU is asked for (or "auto" finds a
/// driver); asking for a GPU that isn't there is an error that says what is missing.
Result<torch::Device> resolveDevice(const std::string& device);

/// 0 = one per core; a GPU is driven by one.
int workerCount(const ComputeSettings& compute, torch::Device device);

/// Makes the calling thread's matrix products single-threaded: a result then never depends on the
/// number of workers. Every thread that computes calls it first.
void useOneThread();

/// Runs fn(0..count-1) on up to `workers` threads, gradients off. Each call must depend on its
/// index only. The error of the lowest failing index is returned; after an error or a stop no new
/// index is begun. C++ exceptions of LibTorch and bad_alloc become ComputeFailed.
Status parallelFor(JobContext& job, int count, int workers, const std::function<Status(int)>& fn);

/// Runs `fn`, turning exceptions of LibTorch and of allocation into ComputeFailed within `where`.
Status guarded(const std::string& where, const std::function<Status()>& fn);

/// The same for work that returns a Result<T>; an error that it returns stays as it is.
template <typename Work>
std::invoke_result_t<Work> guardedResult(const std::string& where, const Work& work)
{
    std::optional<std::invoke_result_t<Work>> outcome;
    MLA_CHECK(guarded(where, [&]() -> Status {
        outcome.emplace(work());
        return {};
    }));
    return std::move(*outcome);
}

/// An engine for random numbers that belongs to (seed, stream, index) alone.
torch::Generator seededGenerator(std::uint64_t seed, std::uint64_t stream, std::uint64_t index = 0);

} // namespace mla
