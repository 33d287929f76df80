// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/kv_factorization.h"

#include <algorithm>
#include <cmath>

#include "core/convert/rank_spectrum.h"

namespace mla
{
namespace
{

using torch::Tensor;
constexpr double kCovarianceDamping = 1e-4; // of the mean diagonal

struct Svd {
    Tensor u, s, vh;
};
Svd thinSvd(const Tensor& a)
{
    auto [u, s, vh] = torch::linalg_svd(a, /*full_matrices=*/false);
    return {u, s, vh};
}

KvFactors joint(const Tensor& k, const Tensor& v, int rank)
{
    const Svd f = thinSvd(torch::cat({k, v}, 0));
    return {f.u.narrow(1, 0, rank) * f.s.narrow(0, 0, rank), f.vh.narrow(0, 0, rank), 0,
            toVector(f.s)};
}

KvFactors split(const Tensor& k, const Tensor& v, int rank)
{
    const auto limit = [](const Tensor& t) {
        return static_cast<int>(std::min(t.size(0), t.size(1)));
    };
    const int keyRank = splitKeyRank(limit(k), limit(v), rank);
    const int valueRank = std::min(rank - keyRank, limit(v));
    const Svd fk = thinSvd(k), fv = thinSvd(v);
    Tensor up = torch::zeros({k.size(0) + v.size(0), keyRank + valueRank}, k.options());
    up.narrow(0, 0, k.size(0))
        .narrow(1, 0, keyRank)
        .copy_(fk.u.narrow(1, 0, keyRank) * fk.s.narrow(0, 0, keyRank));
    up.narrow(0, k.size(0), v.size(0))
        .narrow(1, keyRank, valueRank)
        .copy_(fv.u.narrow(1, 0, valueRank) * fv.s.narrow(0, 0, valueRank));
    std::vector<double> values = toVector(torch::cat({fk.s, fv.s}));
    std::sort(values.begin(), values.end(), std::greater<>());
    return {up, torch::cat({fk.vh.narrow(0, 0, keyRank), fv.vh.narrow(0, 0, valueRank)}), keyRank,
            std::move(values)};
}

Result<KvFactors> activationAware(const Tensor& k, const Tensor& v, int rank, const Tensor& x)
{
    Tensor covariance = x.t().matmul(x) / static_cast<double>(x.size(0));
    covariance = covariance + kCovarianceDamping * covariance.diagonal().mean() *
                                  torch::eye(covariance.size(0), covariance.options());
    const auto [l, info] = torch::linalg_cholesky_ex(covariance);
    if (info.item<int>() != 0)
        return computeFailed("the covariance of the calibration inputs is not positive definite");
    const double scale =
        k.numel() == 0 ? 1.0
                       : v.matmul(l).norm().item<double>() / k.matmul(l).norm().item<double>();
    if (!(scale > 0) || !std::isfinite(scale))
        return computeFailed("keys or values vanish on the calibration data");
    const Svd f = thinSvd(torch::cat({k * scale, v}, 0).matmul(l));
    Tensor up = f.u.narrow(1, 0, rank) * f.s.narrow(0, 0, rank);
    up.narrow(0, 0, k.size(0)).div_(scale);
    Tensor down = torch::linalg_solve_triangular(l, f.vh.narrow(0, 0, rank), /*upper=*/false,
                                                 /*left=*/false, /*unitriangular=*/false);
    // Equal norms on both sides train better than all of S on one. Vanishing directions keep
    // theirs.
    const Tensor balance = (up.norm(2, {0}) / down.norm(2, {1})).clamp_min(1e-12).sqrt();
    return KvFactors{up / balance, down * balance.unsqueeze(1), 0, toVector(f.s)};
}

} // namespace

int splitKeyRank(int keyLimit, int valueLimit, int rank)
{
    const int keyRank = std::min((rank + 1) / 2, keyLimit);
    const int valueRank = std::min(rank - keyRank, valueLimit);
    return std::min(rank - valueRank, keyLimit);
}

std::vector<std::string> svdModes()
{
    return {"joint", "split", "activation-aware"};
}

Result<KvFactors> factorizeKv(const std::string& mode, const Tensor& k, const Tensor& v, int rank,
                              const Tensor& x)
{
    if (mode == "joint")
        return joint(k, v, rank);
    if (mode == "split")
        return split(k, v, rank);
    if (mode == "activation-aware")
        return activationAware(k, v, rank, x);
    return usageError("--svd " + mode + ": expected joint, split or activation-aware");
}

} // namespace mla
