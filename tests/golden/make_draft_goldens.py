# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny drafts in the layouts of TransMLA and MHA2MLA with random weights, and the logits their models give.

    HF_HUB_OFFLINE=1 python tests/golden/make_draft_goldens.py

The forward passes are written here from the tools' formulas, in float64, apart from the product's code:
  TransMLA (github.com/MuLabPKU/TransMLA, transmla/transformers/mla.py, commit cdd6f8e): rotary rows are interleaved pairs of a head of
    qk_rope_head_dim, the latent passes kv_a_layernorm (eps 1e-6) if qk_latent_layernorm, scale (d_n + d_r)^-1/2, o_proj without bias
  MHA2MLA (github.com/JT-Ushio/MHA2MLA, src/mha2mla, commit 7a56785): q_proj holds the rotary rows of all heads and then the others, keys
    are k_r_proj and kv_proj.up_k(kv_proj.down..), a rotary dim keeps the frequency it had, scale head_dim^-1/2
Where Transformers' own DeepseekV3 computes the same model (latent norm, no biases), the script checks itself against it.

Writes, under data/: drafts/NAME/ (config.json, model.safetensors, for 2-norm a torch.save file) and drafts.json
{versions, seed, drafts {NAME: {logits file, spread, cache_elements}}}, draft_NAME.safetensors (input_ids I64 [B,T], logits F32 [B,T,vocab])
"""
import json
import math
import os
import platform
import shutil

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
SEED, LENGTH = 4321, 40
D, F, LAYERS, H, G, HEAD, VOCAB, EPS = 32, 24, 2, 4, 2, 8, 64, 1e-5
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
BASE = {"vocab_size": VOCAB, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": LAYERS, "num_attention_heads": H,
        "max_position_embeddings": 512, "rms_norm_eps": EPS, "rope_theta": 1000.0, "rope_scaling": None, "hidden_act": "silu",
        "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32", "transformers_version": "4.52.4"}


def transmla(architecture="LlamaMLAForCausalLM", bias=False, norm=False, rank=12, rope_dim=4, query_rank=None, scaling=None):
    """config.json as TransMLA's modify_config leaves it"""
    stem = {"LlamaMLAForCausalLM": ("llamamla", "LlamaMLA"), "DeepseekV3ForCausalLM": ("deepseek_v3", "DeepseekV3")}[architecture]
    return BASE | {
        "model_type": "deepseek_v3", "architectures": [architecture], "num_key_value_heads": H, "attention_bias": bias,
        "auto_map": {"AutoConfig": f"configuration_{stem[0]}.{stem[1]}Config", "AutoModelForCausalLM": f"modeling_{stem[0]}.{architecture}"},
        "qk_rope_head_dim": rope_dim, "head_dim": rope_dim, "qk_nope_head_dim": HEAD, "v_head_dim": HEAD, "q_lora_rank": query_rank,
        "kv_lora_rank": rank, "qk_latent_layernorm": norm, "rope_scaling": scaling}


def mha2mla(family="llama", version="high", rope_dim=4, low_rank=5, svd="joint", start=0, path=None, scaling=None):
    """the source's config with the arguments of MHA2MLA's run_train.py"""
    architecture = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}[family]
    return BASE | {
        "model_type": family, "architectures": [architecture], "num_key_value_heads": G, "rope_scaling": scaling, "attention_bias": False,
        "mha2mla": {"model_name_or_path": "tiny", "partial_rope_version": version, "rope_dim_for_mla": rope_dim, "uniform_start_point": start,
                    "qk_tensor_path": path, "svd_init_method": svd, "low_rank": low_rank, "is_baseline": False, "is_gqa2mha2mla": False,
                    "is_mla_from_scratch": False}}


DRAFTS = {
    "transmla-biased": transmla(bias=True),
    "transmla-norm": transmla("DeepseekV3ForCausalLM", norm=True),
    "transmla-factored": transmla(query_rank=20, rank=9, rope_dim=2, scaling=LLAMA3),
    "mha2mla-high": mha2mla(scaling=LLAMA3),
    "mha2mla-low-split": mha2mla(version="low", svd="split", low_rank=3),
    "mha2mla-uniform-biased": mha2mla("qwen2", "uniform", start=1),
    "mha2mla-2-norm": mha2mla("qwen2", "2-norm", svd="split", low_rank=4, path="utils/tiny-2_norm_rank.pth"),
}


def shapes(config):
    """name within self_attn -> shape"""
    if "mha2mla" in config:
        a, biased = config["mha2mla"], config["model_type"] == "qwen2"
        rope, rank = a["rope_dim_for_mla"], a["low_rank"] * G
        found = {"q_proj.weight": (H * HEAD, D), "k_r_proj.weight": (G * rope, D)}
        found |= {f"kv_proj.{n}.weight": (rank, D) for n in (["down_kv"] if a["svd_init_method"] == "joint" else ["down_k", "down_v"])}
        found |= {"kv_proj.up_k.weight": (G * (HEAD - rope), rank), "kv_proj.up_v.weight": (G * HEAD, rank)}
        if biased:
            found |= {f"{n}.bias": (found[f"{n}.weight"][0],) for n in ("q_proj", "k_r_proj", "kv_proj.up_k", "kv_proj.up_v")}
    else:
        rope, rank, query = config["qk_rope_head_dim"], config["kv_lora_rank"], H * (HEAD + config["qk_rope_head_dim"])
        found = {"kv_a_proj_with_mqa.weight": (rank + rope, D), "kv_b_proj.weight": (2 * H * HEAD, rank)}
        if config["q_lora_rank"]:
            found |= {"q_a_proj.weight": (config["q_lora_rank"], D), "q_b_proj.weight": (query, config["q_lora_rank"])}
        else:
            found |= {"q_proj.weight": (query, D)}
        if config["qk_latent_layernorm"]:
            found |= {"kv_a_layernorm.weight": (rank,)}
        if config["attention_bias"]:
            found |= {f"{n}.bias": (found[f"{n}.weight"][0],) for n in ("kv_a_proj_with_mqa", "q_proj")}
    return found | {"o_proj.weight": (D, H * HEAD)}


def weights(config, generator):
    """seeded, sharp enough that positions matter, biases larger than W x"""
    def make(name, shape):
        noise = torch.randn(shape, generator=generator)
        if name.endswith(".bias"):
            return 3 * noise
        if len(shape) == 1:
            return 1 + 0.3 * noise
        return noise * (2.0 if "q_" in name or "k_" in name else 1.0) / shape[1] ** 0.5
    all_shapes = {"model.embed_tokens.weight": (VOCAB, D), "model.norm.weight": (D,), "lm_head.weight": (VOCAB, D)}
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        all_shapes |= {p + "input_layernorm.weight": (D,), p + "post_attention_layernorm.weight": (D,), p + "mlp.gate_proj.weight": (F, D),
                       p + "mlp.up_proj.weight": (F, D), p + "mlp.down_proj.weight": (D, F)}
        all_shapes |= {p + "self_attn." + n: s for n, s in shapes(config).items()}
    return {name: make(name, shape) for name, shape in all_shapes.items()}


def frequencies(config, dim):
    found = [config["rope_theta"] ** (-2 * i / dim) for i in range(dim // 2)]
    if not (s := config["rope_scaling"]):
        return torch.tensor(found, dtype=torch.float64)
    out = []
    for f in found:
        turns = s["original_max_position_embeddings"] * f / (2 * math.pi)
        smooth = (turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
        smooth = min(max(smooth, 0.0), 1.0)
        out.append((1 - smooth) * f / s["factor"] + smooth * f)
    return torch.tensor(out, dtype=torch.float64)


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotated(a, b, angles):
    """(a, b) turned by angles, as halves"""
    return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)


def softmax_average(q, k, v, scale):
    """q, k, v [B, H, T, .]"""
    scores = (q @ k.mT) * scale
    scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def transmla_attention(config, w, x):
    batch, length, _ = x.shape
    rope, rank = config["qk_rope_head_dim"], config["kv_lora_rank"]
    linear = lambda name, t: torch.nn.functional.linear(t, w[f"{name}.weight"], w.get(f"{name}.bias"))
    q = linear("q_b_proj", linear("q_a_proj", x)) if config["q_lora_rank"] else linear("q_proj", x)
    q = q.view(batch, length, H, HEAD + rope).transpose(1, 2)
    down = linear("kv_a_proj_with_mqa", x)
    latent, k_rope = down[..., :rank], down[..., rank:][:, None]
    if config["qk_latent_layernorm"]:
        latent = norm(latent, w["kv_a_layernorm.weight"], 1e-6)
    up = linear("kv_b_proj", latent).view(batch, length, H, 2 * HEAD).transpose(1, 2)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies(config, rope)
    turn = lambda t: rotated(t[..., 0::2], t[..., 1::2], angles)
    q = torch.cat((q[..., :HEAD], turn(q[..., HEAD:])), -1)
    k = torch.cat((up[..., :HEAD], turn(k_rope).expand(-1, H, -1, -1)), -1)
    return linear("o_proj", softmax_average(q, k, up[..., HEAD:], (HEAD + rope) ** -0.5))


def rotary_dims(config, ranks, layer):
    """dims of each KV head that stay rotary, ascending: [G][d_r]"""
    a = config["mha2mla"]
    rope, half = a["rope_dim_for_mla"], HEAD // 2
    version = a["partial_rope_version"]
    if version == "2-norm":
        return [[d for d in range(HEAD) if ranks[layer, g, d] < rope // 2] for g in range(G)]
    if version == "uniform":
        return [list(range(a["uniform_start_point"], HEAD, HEAD // rope))] * G
    pairs = range(rope // 2) if version == "high" else range(half - rope // 2, half)
    return [list(pairs) + [p + half for p in pairs]] * G


def mha2mla_attention(config, w, x, ranks, layer):
    batch, length, _ = x.shape
    a = config["mha2mla"]
    rope = a["rope_dim_for_mla"]
    linear = lambda name, t: torch.nn.functional.linear(t, w[f"{name}.weight"], w.get(f"{name}.bias"))
    heads = lambda t, n: t.view(batch, length, n, -1).transpose(1, 2)
    joint = a["svd_init_method"] == "joint"
    k_c = linear("kv_proj.up_k", linear("kv_proj.down_kv" if joint else "kv_proj.down_k", x))
    v = linear("kv_proj.up_v", linear("kv_proj.down_kv" if joint else "kv_proj.down_v", x))
    q = linear("q_proj", x)
    q_r, q_c = heads(q[..., :H * rope], H), heads(q[..., H * rope:], H)
    k_r = heads(linear("k_r_proj", x), G)
    table = frequencies(config, HEAD)
    table = torch.cat((table, table))[torch.tensor(rotary_dims(config, ranks, layer))][:, :rope // 2]  # [G, d_r / 2]
    angles = torch.arange(length, dtype=torch.float64)[:, None] * table[:, None]
    repeat = lambda t: t.repeat_interleave(H // G, 1)
    k_r = repeat(rotated(*k_r.chunk(2, -1), angles))
    q_r = rotated(*q_r.chunk(2, -1), angles.repeat_interleave(H // G, 0))
    k = torch.cat((k_r, repeat(heads(k_c, G))), -1)
    return linear("o_proj", softmax_average(torch.cat((q_r, q_c), -1), k, repeat(heads(v, G)), HEAD ** -0.5))


def logits(config, tensors, ids, ranks):
    w = {name: t.double() for name, t in tensors.items()}
    hidden = w["model.embed_tokens.weight"][ids]
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        attention = {n[len(p + "self_attn."):]: t for n, t in w.items() if n.startswith(p + "self_attn.")}
        x = norm(hidden, w[p + "input_layernorm.weight"], EPS)
        hidden = hidden + (mha2mla_attention(config, attention, x, ranks, i) if "mha2mla" in config else
                           transmla_attention(config, attention, x))
        x = norm(hidden, w[p + "post_attention_layernorm.weight"], EPS)
        inner = torch.nn.functional.silu(x @ w[p + "mlp.gate_proj.weight"].T) * (x @ w[p + "mlp.up_proj.weight"].T)
        hidden = hidden + inner @ w[p + "mlp.down_proj.weight"].T
    return (norm(hidden, w["model.norm.weight"], EPS) @ w["lm_head.weight"].T).float()


@torch.no_grad()
def check_against_deepseek(config, tensors, ids, expected):
    """Transformers' DeepseekV3 with dense layers is TransMLA's model with a latent norm"""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM
    keys = ("vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads kv_lora_rank q_lora_rank "
            "qk_rope_head_dim qk_nope_head_dim v_head_dim rms_norm_eps max_position_embeddings tie_word_embeddings").split()
    stock = DeepseekV3Config(**{k: config[k] for k in keys}, first_k_dense_replace=LAYERS,
                             rope_parameters={"rope_type": "default", "rope_theta": config["rope_theta"]})
    model = DeepseekV3ForCausalLM(stock).eval()
    missing = model.load_state_dict(tensors, strict=True)
    worst = (model(ids, use_cache=False).logits - expected).abs().max()
    assert worst < 1e-4, (missing, worst)


def cache_elements(config):
    if "mha2mla" in config:
        a = config["mha2mla"]
        return G * (a["low_rank"] * (1 if a["svd_init_method"] == "joint" else 2) + a["rope_dim_for_mla"])
    return config["kv_lora_rank"] + config["qk_rope_head_dim"]


def write(name):
    config = DRAFTS[name]
    generator = torch.Generator().manual_seed(SEED + sorted(DRAFTS).index(name))
    directory = os.path.join(DATA, "drafts", name)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    tensors = weights(config, generator)
    save_file(tensors, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
    ranks = None
    if path := config.get("mha2mla", {}).get("qk_tensor_path"):
        order = torch.rand(LAYERS, G, HEAD // 2, generator=generator).argsort(-1)
        ranks = torch.empty_like(order).scatter_(-1, order, torch.arange(HEAD // 2).expand_as(order)).to(torch.uint8)
        ranks = torch.cat((ranks, ranks), -1)
        torch.save(ranks, os.path.join(directory, os.path.basename(path)))
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    ids = torch.randint(3, VOCAB, (2, LENGTH), generator=generator)
    expected = logits(config, tensors, ids, ranks)
    if name == "transmla-norm":
        check_against_deepseek(config, tensors, ids, expected)
    save_file({"input_ids": ids, "logits": expected.contiguous()}, os.path.join(DATA, f"draft_{name}.safetensors"))
    for folder, file in [(DATA, f"draft_{name}.safetensors")] + [(directory, file) for file in os.listdir(directory)]:
        os.chmod(os.path.join(folder, file), 0o644)
    return {"logits": f"draft_{name}.safetensors", "spread": float(expected.double().std()), "cache_elements": cache_elements(config)}


def main():
    torch.set_num_threads(1)
    facts = {"script": "tests/golden/make_draft_goldens.py", "seed": SEED,
             "versions": {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__},
             "tolerance_of_spread": {"float32": 1e-4}, "drafts": {name: write(name) for name in DRAFTS}}
    with open(os.path.join(DATA, "drafts.json"), "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
