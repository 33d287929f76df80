# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden values of the method on one tiny layer, computed independently in float64 (NumPy, PyTorch).

    python tests/golden/make_method_goldens.py        rewrites data/method_*.safetensors and data/method.json

The layer: hidden d = 40, H = 4 query heads, G = 2 KV heads, head_dim h = 16 (H*h != d), rope_theta 10000,
large q/k/v biases and an output bias; 8 sequences of 12 tokens. Weights are [out, in] as in a checkpoint,
heads are consecutive rows, rotary pairs half-split (pair p of a head = dims p and p + h/2).
"eval" = the first 3 sequences, B = 3. All calibration statistics use all 8 x 12 tokens, none masked.
F64 tensors are exact results; F32 ones are float64 results rounded once.

data/method_layer.safetensors: the inputs (F32, the exact inputs of everything below)
  x [8,12,d]   mask U8 [8,12] (only for losses and training)
  q_proj.weight [H*h,d] q_proj.bias  k_proj.weight [G*h,d] k_proj.bias  v_proj.*  o_proj.weight [d,H*h] o_proj.bias
  keys [8,12,G,h] (before rope, with bias)   values [8,12,G,h]   attention [8,12,d] (after W_O + b_o)

data/method_transmla.safetensors: per case NAME in JSON "transmla" (d_r, freqfold, r given there)
  NAME/rope_projector [G*h,G*h] F64   P_r^T P_r of the rows kept rotary, in the original K basis (head-major)
  NAME/rope_rows [d_r,G*h] F64       those rows: first halves of the kept pairs (frequency indices: JSON rope_pairs), then second
                                     halves; sign: the entry of largest magnitude is positive
  NAME/spectrum [min(n,cols)] F64    singular values of [K_nope/rho, V], rows = the 96 tokens, not damped, not centred
  NAME/keys [3,12,G,h]               K_hat before rope in the original head basis (nope part through the latent)
  NAME/values [3,12,G,h]             V_hat
  NAME/attention [3,12,d]            block's output after W_O + b_o
  NAME/attention_rope_only [3,12,d]  the same at full rank (only the rotary change)
  JSON: rho, rope_pairs, score scale of the unnormalised form (h^-1/2), smallest relative eigen gaps
  weight_spectrum F64                singular values of [W_k; W_v] (2*G*h rows, without biases)

data/method_mha2mla.safetensors
  JSON "selections"/MODE/pairs [G][d_r/2] ascending and scores [G][h/2] (null for fixed modes), MODE = 2-norm, high, low,
  uniform, distance-weighted;  SELECT/MODE/attention_rope_only [3,12,d] at full rank
  per SVD case NAME (JSON "svd"/NAME: selection, mode, r, r_k, r_v, key_scale s):
  NAME/kv_weights [G*(h-d_r)+G*h, d] F64  rank-r reconstruction of [W_k nope; W_v]; nope rows per KV head in ascending pair order,
                                     first halves, then second halves; then the V rows as in the checkpoint
  NAME/spectrum F64                  singular values of the matrix that was decomposed (split: those of K, then those of V)
  NAME/keys [3,12,G,h], values, attention   as above

data/method_training.safetensors: for C = transmla, mha2mla a block with given weights (float32 values)
  C/q_proj.weight [H*(d_n+d_r),d] per head [nope; rope]   C/q_proj.bias
  C/kv_a.weight [r+n_r*d_r,d] latent rows, then rotary keys   C/kv_a.bias [r+n_r*d_r] (transmla) or [n_r*d_r] (mha2mla: the latent has none)
  C/kv_b_k.weight [heads*d_n,r]  C/kv_b_v.weight [heads*d_v,r], heads = H (transmla) or G (mha2mla)   C/kv_b_k.bias, C/kv_b_v.bias (mha2mla)
  C/rope_map [H,h,d_r] (transmla)    fixed map: pre-rope key of head i = W_uk,i c + rope_map_i (W_kr x + b_kr)
  C/attention [3,12,d], keys [3,12,heads,h], values [3,12,heads,h] of that block (keys before rope; mha2mla: the checkpoint's pair order)
  C/functional/grad/NAME             gradient of the reported loss on batch JSON "batch" (NAME as above)
  C/partial_rope/grad/NAME           gradient of ||dK||^2/||K||^2 + ||dV||^2/||V||^2, sums over valid tokens of the batch and
                                     over heads (query heads for transmla, KV heads for mha2mla); q_proj has none
  mha2mla/functional: kv_b_k.bias cancels in the softmax, its gradient is rounding noise and AdamW amplifies it: leave it out
  C/OBJECTIVE/trained/NAME           parameters after a training of S = 3 steps: sequences 0-5 in every batch, 6 and 7 held out
  JSON "training"/C: loss of the batch; "trained": losses, held-out losses before and after each step, gradient norms before
                     clipping, lr per step; denominator
  Functional loss reported = mean over b of (||M_b (A_mla - A_orig)||_F^2 / sum_t M_b,t): each sequence is divided by its own number
  of valid tokens, not the batch by all of them; optimised = reported / denominator,
  denominator = mean over all valid tokens of ||A_orig||^2. AdamW(.9, .95), eps 1e-8, no decay, global-norm clip 1.0;
  lr_s = lr * (1 - s/S) * min(1, (s+1)/max(1, floor(0.05 S))), s = 0, 1, ...
"""
import json
import math
import os
import platform

import numpy as np
import torch
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
D, H, G, HD, THETA, N, T, EVAL, SEED = 40, 4, 2, 16, 10000.0, 8, 12, 3, 20260
PAIRS, GROUP = HD // 2, H // G
FREQ = THETA ** (-np.arange(PAIRS) * 2.0 / HD)  # [h/2]


# ---- the layer -------------------------------------------------------------------------------------------------------

def makeLayer():
    """Weights and anisotropic inputs, rounded to float32 so that every implementation starts from the same numbers."""
    rng = np.random.default_rng(SEED)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    x = rng.normal(size=(N, T, D)) * (0.93 ** np.arange(D)) @ basis + 0.3 * rng.normal(size=D)
    layer = {"x": x}
    for name, rows, cols, biasScale in (("q", H * HD, D, 1.0), ("k", G * HD, D, 1.5), ("v", G * HD, D, 0.7), ("o", D, H * HD, 0.5)):
        decay = 0.95 ** rng.permutation(rows)[:, None]  # unequal rows: distinct eigenvalues and pair norms
        layer[f"{name}_proj.weight"] = rng.normal(size=(rows, cols)) / math.sqrt(cols) * (0.4 + decay)
        layer[f"{name}_proj.bias"] = rng.normal(size=rows) * biasScale
    layer = {k: v.astype(np.float32).astype(np.float64) for k, v in layer.items()}
    layer["mask"] = np.ones((N, T))
    for sequence, valid in ((1, 9), (2, 5), (5, 11)):
        layer["mask"][sequence, valid:] = 0
    return layer


def project(layer, name, x):
    return x @ layer[f"{name}_proj.weight"].T + layer[f"{name}_proj.bias"]


def rotate(pairsA, pairsB, frequencies):
    """Turns (a, b) at position t by t*frequency. pairsA/B [..., T, m], frequencies broadcastable to [..., 1, m]."""
    angle = torch.arange(pairsA.shape[-2], dtype=pairsA.dtype)[:, None] * frequencies
    c, s = torch.cos(angle), torch.sin(angle)
    return pairsA * c - pairsB * s, pairsB * c + pairsA * s


def halfSplitRope(v, frequencies):
    m = v.shape[-1] // 2
    return torch.cat(rotate(v[..., :m], v[..., m:], frequencies), -1)


def causalAttention(scores, v):
    """scores [B,H,T,T], v [B,H,T,h] -> [B,T,H*h]"""
    t = scores.shape[-1]
    blocked = torch.ones(t, t, dtype=torch.bool).triu(1)
    p = torch.softmax(scores.masked_fill(blocked, -math.inf), -1)
    return torch.einsum("bhts,bhsd->bthd", p, v).flatten(2)


def tensor(a, dtype=torch.float64):
    return torch.as_tensor(np.asarray(a), dtype=dtype)


def output(layer, mixed):
    return mixed @ tensor(layer["o_proj.weight"], mixed.dtype).T + tensor(layer["o_proj.bias"], mixed.dtype)


def originalAttention(layer, x):
    q = tensor(project(layer, "q", x)).view(*x.shape[:2], H, HD).transpose(1, 2)
    k = tensor(project(layer, "k", x)).view(*x.shape[:2], G, HD).transpose(1, 2).repeat_interleave(GROUP, 1)
    v = tensor(project(layer, "v", x)).view(*x.shape[:2], G, HD).transpose(1, 2).repeat_interleave(GROUP, 1)
    scores = torch.einsum("bhtd,bhsd->bhts", halfSplitRope(q, tensor(FREQ)), halfSplitRope(k, tensor(FREQ))) / math.sqrt(HD)
    return output(layer, causalAttention(scores, v)).numpy()


# ---- TransMLA: everything expressed in the original key basis, so nothing depends on signs of eigenvectors -------------

def roropeRows(keys, dR, fold):
    """Kept pairs [(frequency index, first-half row [G*h], second-half row [G*h])] and the nope rows [G*h - d_r, G*h]."""
    collapse = HD // dR
    kept, rest, gaps = [], [], []
    flat = keys.reshape(-1, G, 2, PAIRS)
    for group in range(PAIRS // fold):
        columns = flat[..., group * fold:(group + 1) * fold]  # [n, G, half, f]
        moment = sum(columns[:, :, half].reshape(-1, G * fold).T @ columns[:, :, half].reshape(-1, G * fold) for half in (0, 1))
        moment += 0.01 * np.trace(moment) / len(moment) * np.eye(len(moment))
        values, vectors = np.linalg.eigh(moment)
        order = np.argsort(values)[::-1]
        gaps.append(float(np.min(-np.diff(values[order])) / values.max()))
        for rank, column in enumerate(order):
            rows = np.zeros((2, G, 2, PAIRS))
            for half in (0, 1):
                rows[half, :, half, group * fold:(group + 1) * fold] = vectors[:, column].reshape(G, fold)
            first, second = rows.reshape(2, G * HD)
            if rank < fold // collapse:
                kept.append((group * fold + rank * collapse, first, second))
            else:
                rest += [first, second]
    return kept, np.array(rest).reshape(-1, G * HD), min(gaps)


def transmlaOutput(layer, x, kept, keysNope, values):
    """Attention with rotary scores from the kept pairs and position-free scores from the other keys.

    keysNope [B,T,G*h] are already back in the original basis; a head sees only its own KV head's dims of any row."""
    b, t = x.shape[:2]
    q = project(layer, "q", x).reshape(b, t, H, HD)
    keys = project(layer, "k", x)
    own = np.repeat(np.eye(G * HD).reshape(G, HD, G * HD), GROUP, 0)  # [H, h, G*h]: where head i reads K
    nope = np.einsum("bthd,hdc,bsc->bhts", q, own, keysNope)
    scores = torch.tensor(nope)
    for frequency, first, second in kept:
        qa, qb = (tensor(np.einsum("bthd,hdc,c->bht", q, own, row))[..., None] for row in (first, second))
        ka, kb = (tensor(keys @ row)[..., None] for row in (first, second))
        qa, qb = rotate(qa, qb, float(FREQ[frequency]))
        ka, kb = rotate(ka, kb, float(FREQ[frequency]))
        scores = scores + qa @ ka.transpose(-1, -2)[:, None] + qb @ kb.transpose(-1, -2)[:, None]
    v = tensor(values.reshape(b, t, G, HD)).transpose(1, 2).repeat_interleave(GROUP, 1)
    return output(layer, causalAttention(scores / math.sqrt(HD), v)).numpy()


def transmlaCase(layer, dR, fold, rank):
    x, ev = layer["x"], layer["x"][:EVAL]
    kept, nopeRows, roropeGap = roropeRows(project(layer, "k", x), dR, fold)
    joint = lambda states, rho: np.concatenate([project(layer, "k", states) @ nopeRows.T / rho, project(layer, "v", states)], -1)
    columns = np.linalg.norm(joint(x, 1.0).reshape(N * T, -1), axis=0)
    rho = columns[:len(nopeRows)].mean() / columns[len(nopeRows):].mean()
    y = joint(x, rho).reshape(N * T, -1)
    _, spectrum, axes = np.linalg.svd(y, full_matrices=False)
    projector = axes[:rank].T @ axes[:rank]
    reduced = joint(ev, rho) @ projector
    nopeHat = reduced[..., :len(nopeRows)] * rho @ nopeRows
    values = reduced[..., len(nopeRows):]
    halves = np.array([a for _, a, _ in kept] + [b for _, _, b in kept])
    keys = project(layer, "k", ev)
    ropeProjector = halves.T @ halves
    tensors = {
        "rope_projector": ropeProjector,
        "rope_rows": halves * np.sign(np.take_along_axis(halves, np.abs(halves).argmax(1)[:, None], 1)),
        "spectrum": spectrum,
        "keys": (keys @ ropeProjector + nopeHat).reshape(EVAL, T, G, HD),
        "values": values.reshape(EVAL, T, G, HD),
        "attention": transmlaOutput(layer, ev, kept, nopeHat, values),
        "attention_rope_only": transmlaOutput(layer, ev, kept, keys - keys @ ropeProjector, project(layer, "v", ev)),
    }
    facts = {"qk_rope_head_dim": dR, "freqfold": fold, "kv_lora_rank": rank, "rho": rho, "rope_pairs": [f for f, _, _ in kept],
             "rorope_relative_gap": roropeGap, "rank_relative_gap": float(1 - spectrum[rank] / spectrum[rank - 1])}
    return tensors, facts


# ---- MHA2MLA ----------------------------------------------------------------------------------------------------------

def pairScores(layer, weighted):
    norms = {n: np.linalg.norm(project(layer, n, layer["x"]).reshape(N * T, -1, 2, PAIRS), axis=2).mean(0) for n in "qk"}
    score = norms["k"] * norms["q"].reshape(G, GROUP, PAIRS).sum(1)
    if weighted:
        distance = np.arange(256)[:, None]
        score = score * np.sqrt(2 * (1 - np.cos(FREQ * distance))).mean(0)
    return score


def selectPairs(layer, mode, count):
    fixed = {"high": range(count), "low": range(PAIRS - count, PAIRS), "uniform": range(0, PAIRS, PAIRS // count)}
    if mode in fixed:
        return [list(fixed[mode])] * G, None
    scores = pairScores(layer, mode == "distance-weighted")
    return [sorted(np.argsort(-row)[:count].tolist()) for row in scores], scores.tolist()


def nopeDims(pairs):
    rest = [p for p in range(PAIRS) if p not in pairs]
    return rest + [p + PAIRS for p in rest]


def ropeDims(pairs):
    return list(pairs) + [p + PAIRS for p in pairs]


def truncate(matrix, rank):
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vt[:rank], s


def factorise(layer, pairs, mode, rank):
    """Rank-r reconstruction of the stacked weights [K_nope; V], spectrum, facts."""
    wk = layer["k_proj.weight"].reshape(G, HD, D)
    k = np.concatenate([wk[g][nopeDims(pairs[g])] for g in range(G)])
    v = layer["v_proj.weight"]
    if mode == "joint":
        w, s = truncate(np.concatenate([k, v]), rank)
        return w, s, {}
    if mode == "split":
        rankK = -(-rank // 2)
        (wK, sK), (wV, sV) = truncate(k, rankK), truncate(v, rank - rankK)
        return np.concatenate([wK, wV]), np.concatenate([sK, sV]), {"r_k": rankK, "r_v": rank - rankK}
    x = layer["x"].reshape(-1, D)
    moment = x.T @ x / len(x)
    chol = np.linalg.cholesky(moment + 1e-4 * np.trace(moment) / D * np.eye(D))
    scale = np.linalg.norm(v @ chol) / np.linalg.norm(k @ chol)
    w, s = truncate(np.concatenate([k * scale, v]) @ chol, rank)
    w = np.linalg.solve(chol.T, w.T).T
    w[:len(k)] /= scale
    return w, s, {"key_scale": scale}


def mha2mlaOutput(layer, x, pairs, weights):
    """Keys [B,T,G,h] (checkpoint order), values, output when the nope keys and values come from `weights`."""
    b, t = x.shape[:2]
    split = G * (HD - 2 * len(pairs[0]))
    keys = project(layer, "k", x).reshape(b, t, G, HD)
    nope = (x @ weights[:split].T).reshape(b, t, G, -1)
    for g in range(G):
        dims = nopeDims(pairs[g])
        keys[:, :, g, dims] = nope[:, :, g] + layer["k_proj.bias"].reshape(G, HD)[g, dims]
    values = (x @ weights[split:].T + layer["v_proj.bias"]).reshape(b, t, G, HD)
    q = project(layer, "q", x).reshape(b, t, H, HD)
    frequencies = np.zeros((H, 1, PAIRS))  # frequency 0 = a pair that lost its rotation
    for i in range(H):
        frequencies[i, 0, pairs[i // GROUP]] = FREQ[pairs[i // GROUP]]
    spread = lambda a: tensor(a).transpose(1, 2)
    qr = halfSplitRope(spread(q), tensor(frequencies))
    kr = halfSplitRope(spread(keys).repeat_interleave(GROUP, 1), tensor(frequencies))
    v = spread(values).repeat_interleave(GROUP, 1)
    scores = qr @ kr.transpose(-1, -2) / math.sqrt(HD)
    return keys, values, output(layer, causalAttention(scores, v)).numpy()


# ---- training ---------------------------------------------------------------------------------------------------------

def makeBlock(converter):
    """A random block near nothing in particular: training checks need given weights, not converted ones."""
    rng = np.random.default_rng(SEED + (1 if converter == "transmla" else 2))
    transmla = converter == "transmla"
    dR, rank = 8, 10
    dN, ropeHeads, heads = (HD, 1, H) if transmla else (HD - dR, G, G)
    block = {
        "q_proj.weight": rng.normal(size=(H * (dN + dR), D)) / math.sqrt(D), "q_proj.bias": rng.normal(size=H * (dN + dR)) * 0.3,
        "kv_a.weight": rng.normal(size=(rank + ropeHeads * dR, D)) / math.sqrt(D),
        "kv_a.bias": rng.normal(size=(rank if transmla else 0) + ropeHeads * dR) * 0.3,
        "kv_b_k.weight": rng.normal(size=(heads * dN, rank)) / math.sqrt(rank), "kv_b_v.weight": rng.normal(size=(heads * HD, rank)) / math.sqrt(rank),
    }
    if not transmla:
        block |= {"kv_b_k.bias": rng.normal(size=heads * dN) * 0.3, "kv_b_v.bias": rng.normal(size=heads * HD) * 0.3}
    fixed = {"pairs": [[0, 2, 4, 6]] if transmla else [[0, 1, 3, 6], [1, 2, 4, 7]], "d_r": dR, "d_n": dN, "heads": heads, "r": rank}
    if transmla:
        fixed["rope_map"] = (rng.normal(size=(H, HD, dR)) * 0.3).astype(np.float32).astype(np.float64)
    return {k: v.astype(np.float32).astype(np.float64) for k, v in block.items()}, fixed


def runBlock(p, fixed, layer, x):
    """p: name -> torch parameter. Returns attention [B,T,d], keys [B,heads,T,h] in the original basis, values [B,heads,T,h]."""
    b, t = x.shape[:2]
    r, dR, dN, heads, ropeHeads = fixed["r"], fixed["d_r"], fixed["d_n"], fixed["heads"], len(fixed["pairs"])
    latent = x @ p["kv_a.weight"][:r].T
    rope = x @ p["kv_a.weight"][r:].T + p["kv_a.bias"][-ropeHeads * dR:]
    if len(p["kv_a.bias"]) > ropeHeads * dR:
        latent = latent + p["kv_a.bias"][:r]
    perHead = lambda a, n: a.view(b, t, n, -1).transpose(1, 2)
    nope = perHead(latent @ p["kv_b_k.weight"].T + p.get("kv_b_k.bias", 0), heads)
    v = perHead(latent @ p["kv_b_v.weight"].T + p.get("kv_b_v.bias", 0), heads)
    rope = perHead(rope, ropeHeads)
    q = perHead(x @ p["q_proj.weight"].T + p["q_proj.bias"], H)
    freq = tensor(np.array([FREQ[pairs] for pairs in fixed["pairs"]]), x.dtype)[:, None]  # [n_r,1,m]
    qRope = halfSplitRope(q[..., dN:], freq.repeat_interleave(H // ropeHeads, 0))
    kRope = halfSplitRope(rope, freq).repeat_interleave(H // ropeHeads, 1)
    scores = q[..., :dN] @ nope.repeat_interleave(H // heads, 1).transpose(-1, -2) + qRope @ kRope.transpose(-1, -2)
    attention = output(layer, causalAttention(scores / math.sqrt(HD), v.repeat_interleave(H // heads, 1)))
    if "rope_map" in fixed:
        keys = nope + torch.einsum("btc,hdc->bhtd", rope[:, 0], tensor(fixed["rope_map"], x.dtype))
    else:
        keys = torch.stack([torch.cat([rope[:, g], nope[:, g]], -1)[..., np.argsort(ropeDims(fixed["pairs"][g]) + nopeDims(fixed["pairs"][g]))]
                            for g in range(G)], 1)
    return attention, keys, v


def lossOf(objective, p, fixed, layer, batch, targets):
    dtype = next(iter(p.values())).dtype
    mask = tensor(layer["mask"][batch], dtype)
    attention, keys, values = runBlock(p, fixed, layer, tensor(layer["x"][batch], dtype))
    if objective == "functional":
        squared = (attention - tensor(targets["attention"][batch], dtype)).square().sum(-1) * mask  # [B, T]
        return (squared.sum(1) / mask.sum(1)).mean()
    loss = 0
    for mine, name in ((keys, "keys"), (values, "values")):
        want = tensor(targets[name][batch], dtype).transpose(1, 2)
        want = want.repeat_interleave(fixed["heads"] // G, 1)
        m = mask[:, None, :, None]
        loss = loss + ((mine - want).square() * m).sum() / (want.square() * m).sum()
    return loss


def parameters(block, dtype):
    return {k: tensor(v, dtype).clone().requires_grad_(True) for k, v in block.items()}


def trained(objective, block, fixed, layer, targets, denominator, dtype, lr=2e-3, steps=3, rows=tuple(range(6)), heldout=(6, 7)):
    """A whole training of three steps, all training sequences in each batch; held-out loss before it and after every step."""
    p = parameters(block, dtype)
    optimizer = torch.optim.AdamW(p.values(), lr=lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    measure = lambda batch: lossOf(objective, p, fixed, layer, list(batch), targets)
    losses, norms, rates, held = [], [], [], [float(measure(heldout).detach())]
    for step in range(steps):
        rate = lr * (1 - step / steps) * min(1.0, (step + 1) / max(1, math.floor(0.05 * steps)))
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        loss = measure(rows)
        (loss / (denominator if objective == "functional" else 1.0)).backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_([v for v in p.values() if v.grad is not None], 1.0)))
        optimizer.step()
        losses.append(float(loss.detach()))
        held.append(float(measure(heldout).detach()))
        rates.append(rate)
    assert held == sorted(held, reverse=True), "the last step must be the best, for it is the one that a refinement keeps"
    facts = {"lr": lr, "steps": steps, "heldout_sequences": len(heldout), "losses": losses, "heldout_losses": held,
             "gradient_norms": norms, "learning_rates": rates}
    return {k: v.detach().numpy() for k, v in p.items()}, facts


def trainingCase(converter, layer, targets):
    block, fixed = makeBlock(converter)
    batch = [1, 2, 4]
    valid = layer["mask"].astype(bool)
    denominator = float(np.square(targets["attention"]).sum(-1)[valid].mean())
    attention, keys, values = runBlock({k: tensor(v) for k, v in block.items()}, fixed, layer, tensor(layer["x"][:EVAL]))
    tensors = dict(block) | {"attention": attention.numpy(), "keys": keys.transpose(1, 2).numpy(), "values": values.transpose(1, 2).numpy()}
    if "rope_map" in fixed:
        tensors["rope_map"] = fixed["rope_map"]
    facts = {"qk_rope_head_dim": fixed["d_r"], "qk_nope_head_dim": fixed["d_n"], "kv_up_heads": fixed["heads"], "kv_lora_rank": fixed["r"],
             "rope_pairs": fixed["pairs"], "attention_scale": HD ** -0.5, "batch": batch, "denominator": denominator}
    for objective, key in (("functional", "functional"), ("partial-rope", "partial_rope")):
        p = parameters(block, torch.float64)
        loss = lossOf(objective, p, fixed, layer, batch, targets)
        loss.backward()
        inert = {"kv_b_k.bias"} if objective == "functional" else {k for k in p if k.startswith("q_proj")}
        tensors |= {f"{key}/grad/{k}": v.grad.numpy() for k, v in p.items() if k not in inert}
        exact, steps = trained(objective, block, fixed, layer, targets, denominator, torch.float64)
        single, _ = trained(objective, block, fixed, layer, targets, denominator, torch.float32)
        tensors |= {f"{key}/trained/{k}": v for k, v in exact.items() if k not in inert}
        worst = max(float(np.abs(exact[k] - single[k]).max()) for k in exact if k not in inert)
        facts[key] = {"loss": float(loss.detach()), "trained": steps | {"float32_max_difference": worst}}
    return {k: v.astype(np.float32) for k, v in tensors.items()}, facts


# ---- writing ----------------------------------------------------------------------------------------------------------

def transmlaGoldens(layer):
    stacked = np.concatenate([layer["k_proj.weight"], layer["v_proj.weight"]])
    tensors, facts = {"weight_spectrum": np.linalg.svd(stacked, compute_uv=False)}, {}
    for name, dR, fold, rank in (("fold2", 8, 2, 20), ("fold4", 8, 4, 20), ("narrow", 4, 4, 12)):
        values, facts[name] = transmlaCase(layer, dR, fold, rank)
        tensors |= {f"{name}/{k}": v for k, v in values.items()}
    return tensors, facts


def mha2mlaGoldens(layer, dR=8):
    tensors, selections, svd, chosen = {}, {}, {}, {}
    for mode in ("2-norm", "high", "low", "uniform", "distance-weighted"):
        pairs, scores = selectPairs(layer, mode, dR // 2)
        chosen[mode] = pairs
        selections[mode] = {"pairs": pairs, "scores": scores}
        full, _, _ = factorise(layer, pairs, "joint", D)
        tensors[f"SELECT/{mode}/attention_rope_only"] = mha2mlaOutput(layer, layer["x"][:EVAL], pairs, full)[2]
    for name, mode, selection, rank in (("joint", "joint", "2-norm", 20), ("split", "split", "uniform", 21),
                                        ("activation-aware", "activation-aware", "distance-weighted", 20)):
        weights, spectrum, extra = factorise(layer, chosen[selection], mode, rank)
        keys, values, attention = mha2mlaOutput(layer, layer["x"][:EVAL], chosen[selection], weights)
        tensors |= {f"{name}/{k}": v for k, v in (("kv_weights", weights), ("spectrum", spectrum), ("keys", keys), ("values", values), ("attention", attention))}
        svd[name] = {"selection": selection, "mode": mode, "kv_lora_rank": rank} | extra
    return tensors, {"qk_rope_head_dim": dR, "selections": selections, "svd": svd}


def rounded(tensors, exact):
    """Float64 where the test compares spectra and projectors, float32 elsewhere (half the bytes)."""
    keep = lambda k, v: v if k.split("/")[-1] in exact else v.astype(np.float32)
    return {k: np.ascontiguousarray(keep(k, v)) for k, v in tensors.items()}


def main():
    torch.set_num_threads(1)
    layer = makeLayer()
    heads = lambda name: project(layer, name, layer["x"]).reshape(N, T, G, HD)
    targets = {"keys": heads("k"), "values": heads("v"), "attention": originalAttention(layer, layer["x"])}
    files = {"layer": {k: v.astype(np.float32) for k, v in (layer | targets).items()} | {"mask": layer["mask"].astype(np.uint8)}}
    transmla, transmlaFacts = transmlaGoldens(layer)
    mha2mla, mha2mlaFacts = mha2mlaGoldens(layer)
    exact = ("spectrum", "weight_spectrum", "rope_projector", "rope_rows", "kv_weights")
    files |= {"transmla": rounded(transmla, exact), "mha2mla": rounded(mha2mla, exact), "training": {}}
    training = {}
    for converter in ("transmla", "mha2mla"):
        tensors, training[converter] = trainingCase(converter, layer, targets)
        files["training"] |= {f"{converter}/{k}": v for k, v in tensors.items()}
    for name, tensors in files.items():
        path = os.path.join(HERE, "data", f"method_{name}.safetensors")
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path)
        os.chmod(path, 0o644)
    document = {
        "script": "tests/golden/make_method_goldens.py", "seed": SEED,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__},
        "layer": {"hidden_size": D, "num_attention_heads": H, "num_key_value_heads": G, "head_dim": HD, "rope_theta": THETA,
                  "sequences": N, "length": T, "eval_sequences": EVAL},
        "tolerance": {"comment": "max |difference| / max |golden|", "float64": 1e-6, "float32": 5e-5, "float64_tensors_in_float64": 1e-9,
                      "trained_float32_absolute": 1e-5},
        "transmla": transmlaFacts, "mha2mla": mha2mlaFacts, "training": training}
    with open(os.path.join(HERE, "data", "method.json"), "w") as f:
        json.dump(document, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
