// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/causal_attention.h"

#include <torch/autograd.h>

#include <algorithm>
#include <limits>

namespace mla
{
namespace
{

constexpr std::int64_t kBlock =
    64; // rows of queries a block; small enough to skip most of the triangle

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// -inf above the diagonal of the last `rows` columns of scores [..., rows, cols].
void maskDiagonalBlock(torch::Tensor& scores)
{
    const std::int64_t rows = scores.size(-2), cols = scores.size(-1);
    if (rows == 1)
        return;
    const torch::Tensor above =
        torch::ones({rows, rows}, scores.options().dtype(torch::kBool)).triu(1);
    scores.narrow(-1, cols - rows, rows)
        .masked_fill_(above, -std::numeric_limits<double>::infinity());
}

/// -inf left of each row's window.
void maskBeforeWindow(torch::Tensor& scores, std::int64_t window)
{
    const std::int64_t rows = scores.size(-2), cols = scores.size(-1);
    if (window <= 0 || cols <= window)
        return;
    const torch::Tensor before =
        torch::ones({rows, cols}, scores.options().dtype(torch::kBool)).tril(cols - rows - window);
    scores.masked_fill_(before, -std::numeric_limits<double>::infinity());
}

/// Flattened to batches of matrices: q, k [N, T, d_k], v [N, T, d_v].
struct BlockedAttention : torch::autograd::Function<BlockedAttention> {
    static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& q,
                                 const torch::Tensor& k, const torch::Tensor& v, double scale,
                                 std::int64_t window)
    {
        const std::int64_t length = q.size(1);
        torch::Tensor out = torch::empty({q.size(0), length, v.size(2)}, q.options());
        variable_list saved = {q, k, v, out};
        for (std::int64_t begin = 0; begin < length; begin += kBlock) {
            const std::int64_t end = std::min(begin + kBlock, length);
            const std::int64_t first = firstVisible(begin, window);
            torch::Tensor scores =
                torch::bmm(q.slice(1, begin, end) * scale, k.slice(1, first, end).transpose(1, 2));
            maskFuture(scores, window);
            const torch::Tensor probabilities = scores.softmax(-1); // [N, block, end - first]
            out.slice(1, begin, end).copy_(torch::bmm(probabilities, v.slice(1, first, end)));
            saved.push_back(probabilities);
        }
        ctx->saved_data["scale"] = scale;
        ctx->saved_data["window"] = window;
        ctx->save_for_backward(saved);
        return out;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads)
    {
        const variable_list saved = ctx->get_saved_variables();
        const torch::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3];
        const torch::Tensor grad = grads[0].contiguous();
        const double scale = ctx->saved_data["scale"].toDouble();
        const std::int64_t window = ctx->saved_data["window"].toInt();
        const std::int64_t length = q.size(1);
        torch::Tensor gradQ = torch::empty_like(q), gradK = torch::zeros_like(k),
                      gradV = torch::zeros_like(v);
        const torch::Tensor dots = (grad * out).sum(-1, true); // [N, T, 1]
        for (std::int64_t begin = 0, block = 0; begin < length; begin += kBlock, ++block) {
            const std::int64_t end = std::min(begin + kBlock, length);
            const std::int64_t first = firstVisible(begin, window);
            const torch::Tensor& p = saved[static_cast<std::size_t>(4 + block)];
            const torch::Tensor g = grad.slice(1, begin, end);
            gradV.slice(1, first, end).baddbmm_(p.transpose(1, 2), g);
            torch::Tensor gradScores = torch::bmm(g, v.slice(1, first, end).transpose(1, 2));
            gradScores.sub_(dots.slice(1, begin, end)).mul_(p).mul_(scale);
            gradQ.slice(1, begin, end).copy_(torch::bmm(gradScores, k.slice(1, first, end)));
            gradK.slice(1, first, end).baddbmm_(gradScores.transpose(1, 2), q.slice(1, begin, end));
        }
        return {gradQ, gradK, gradV, torch::Tensor(), torch::Tensor()};
    }
};

} // namespace

torch::Tensor causalAttention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale, std::int64_t window)
{
    const auto flat = [](const torch::Tensor& t) {
        return t.reshape({t.size(0) * t.size(1), t.size(2), t.size(3)});
    };
    const torch::Tensor out = BlockedAttention::apply(flat(q), flat(k), flat(v), scale, window);
    return out.view({q.size(0), q.size(1), q.size(2), v.size(3)});
}

void maskFuture(torch::Tensor& scores, std::int64_t window)
{
    maskDiagonalBlock(scores);
    maskBeforeWindow(scores, window);
}

torch::Tensor causalProbabilities(const torch::Tensor& q, const torch::Tensor& k, double scale,
                                  std::int64_t window)
{
    torch::Tensor scores = torch::matmul(q * scale, k.transpose(-1, -2));
    maskFuture(scores, window);
    return scores.softmax(-1);
}

} // namespace mla
