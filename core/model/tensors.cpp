// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/tensors.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "core/checkpoint/tensor_decode.h"

namespace mla
{

torch::Dtype torchDtype(DType dtype)
{
    switch (dtype) {
    case DType::F64:
        return torch::kFloat64;
    case DType::F32:
        return torch::kFloat32;
    case DType::F16:
        return torch::kFloat16;
    case DType::BF16:
        return torch::kBFloat16;
    case DType::F8E4M3:
        return torch::kFloat8_e4m3fn;
    case DType::F8E5M2:
        return torch::kFloat8_e5m2;
    case DType::I64:
        return torch::kInt64;
    case DType::I32:
        return torch::kInt32;
    case DType::I16:
        return torch::kInt16;
    case DType::I8:
        return torch::kInt8;
    case DType::U64:
        return torch::kUInt64;
    case DType::U32:
        return torch::kUInt32;
    case DType::U16:
        return torch::kUInt16;
    case DType::U8:
        return torch::kUInt8;
    case DType::Bool:
        return torch::kBool;
    }
    return torch::kFloat32;
}

DType dtypeOf(torch::Dtype dtype)
{
    for (const DType candidate : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3,
                                  DType::F8E5M2, DType::I64, DType::I32, DType::I16, DType::I8,
                                  DType::U64, DType::U32, DType::U16, DType::U8, DType::Bool})
        if (torchDtype(candidate) == dtype)
            return candidate;
    TORCH_CHECK(false, "no safetensors dtype for ", dtype);
}

namespace
{

torch::Tensor copyTensor(const TensorInfo& info, std::span<const std::byte> bytes,
                         torch::Dtype dtype, torch::Device device)
{
    // The mapping promises no alignment, so the bytes are copied before they are read as numbers.
    torch::Tensor raw = torch::empty(info.shape, torchDtype(info.dtype));
    if (!bytes.empty())
        std::memcpy(raw.data_ptr(), bytes.data(), bytes.size());
    return raw.to(device, dtype);
}

} // namespace

Result<torch::Tensor> loadTensor(const Checkpoint& checkpoint, const std::string& name,
                                 torch::Dtype dtype, torch::Device device)
{
    MLA_TRY(info, checkpoint.info(name));
    const bool asStored = checkpoint.isPlain(name) && torchDtype(info.dtype) == dtype;
    if (!isDecodable(info.dtype) || (asStored && dtype != torch::kFloat32)) {
        MLA_TRY(bytes, checkpoint.bytes(name));
        return copyTensor(info, bytes, dtype, device);
    }
    const torch::Tensor numbers = torch::empty(info.shape, torch::kFloat32);
    const std::span<float> room(numbers.data_ptr<float>(),
                                static_cast<std::size_t>(numbers.numel()));
    MLA_CHECK(checkpoint.readFloat32(name, room));
    MLA_CHECK(checkpoint.requireFinite(name, room));
    return numbers.to(device, dtype);
}

Result<torch::Tensor> loadTensor(const SafetensorsFile& file, const std::string& name,
                                 torch::Dtype dtype, torch::Device device)
{
    MLA_TRY(bytes, file.bytes(name));
    return copyTensor(file.tensors().at(name), bytes, dtype, device);
}

TensorView viewOf(const std::string& name, const torch::Tensor& tensor)
{
    TORCH_CHECK(tensor.is_contiguous() && tensor.device().is_cpu(), name, " is not contiguous");
    return {name,
            dtypeOf(tensor.scalar_type()),
            tensor.sizes().vec(),
            {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
}

namespace
{

/// Registers the CUDA backend by loading its library, once. False when it can't be loaded.
bool loadCuda()
{
    static const bool loaded = [] {
        if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
            return false; // no driver: nothing to load for
        return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr;
    }();
    return loaded && torch::cuda::is_available();
}

} // namespace

Result<torch::Device> resolveDevice(const std::string& device)
{
    if (device == "cpu")
        return torch::Device(torch::kCPU);
    if (device == "auto")
        return torch::Device(loadCuda() ? torch::kCUDA : torch::kCPU);
    int index = 0;
    if (device.starts_with("cuda:")) {
        const std::string number = device.substr(5);
        if (number.empty() || number.size() > 3 ||
            number.find_first_not_of("0123456789") != std::string::npos)
            return usageError("--device " + device + ": expected auto, cpu, cuda or cuda:N");
        index = std::stoi(number);
    } else if (device != "cuda") {
        return usageError("--device " + device + ": expected auto, cpu, cuda or cuda:N");
    }
    if (!loadCuda())
        return computeFailed("no usable CUDA device", "--device " + device,
                             "a driver and LibTorch's CUDA libraries are needed: "
                             "installer/setup.sh --cuda (from a package: mla-draft-setup --cuda)");
    if (index >= static_cast<int>(torch::cuda::device_count()))
        return usageError("--device " + device + ": this machine has " +
                          std::to_string(torch::cuda::device_count()) + " CUDA device(s)");
    return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

int workerCount(const ComputeSettings& compute, torch::Device device)
{
    if (!device.is_cpu())
        return 1;
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return compute.threads > 0 ? compute.threads : cores;
}

void useOneThread()
{
    at::set_num_threads(1);
}

Status guarded(const std::string& where, const std::function<Status()>& fn)
{
    try {
        Status status = fn();
        return status ? Status() : Status(std::move(status).error().within(where));
    } catch (const std::bad_alloc&) {
        return computeFailed("out of memory", where);
    } catch (const c10::Error& e) {
        return computeFailed(e.what_without_backtrace(), where);
    } catch (const std::exception& e) {
        return computeFailed(e.what(), where);
    }
}

Status parallelFor(JobContext& job, int count, int workers, const std::function<Status(int)>& fn)
{
    std::atomic<int> next = 0;
    std::atomic<bool> failed = false;
    std::mutex mutex;
    int firstFailure = count;
    std::optional<Error> error;

    const auto work = [&] {
        useOneThread();
        const torch::NoGradGuard noGrad;
        while (!failed && !job.stopRequested()) {
            const int index = next++;
            if (index >= count)
                return;
            Status status = guarded({}, [&] { return fn(index); });
            if (status)
                continue;
            const std::scoped_lock lock(mutex);
            failed = true;
            if (index < firstFailure) {
                firstFailure = index;
                error = std::move(status).error();
            }
        }
    };
    if (workers <= 1 || count <= 1) {
        work();
    } else {
        std::vector<std::jthread> threads;
        threads.reserve(static_cast<std::size_t>(std::min(workers, count)));
        for (int i = 0; i < std::min(workers, count); ++i)
            threads.emplace_back(work);
    }
    if (error)
        return std::move(*error);
    return job.stopRequested() ? Status(cancelled()) : Status();
}

torch::Generator seededGenerator(std::uint64_t seed, std::uint64_t stream, std::uint64_t index)
{
    // splitmix64 finaliser over the triple: neighbouring layers get unrelated streams.
    std::uint64_t z = seed * 0x9E3779B97F4A7C15ULL + stream * 0xBF58476D1CE4E5B9ULL + index;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return at::detail::createCPUGenerator(z ^ (z >> 31U));
}

} // namespace mla
