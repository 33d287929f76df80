#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the golden files of stored weights, with the gguf package, PyTorch and safetensors.

usage: make_storage_goldens.py        (after make_model_goldens.py)

data/storage/
  blocks.safetensors       per ggml type: TYPE.raw U8 [rows, bytes], TYPE.values F32 [rows, numbers] by gguf.dequantize
  NAME.gguf                tiny/NAME as llama.cpp's converter would write it, plain types
  stories260K.gguf         the demo's checkpoint in Q8_0 (F16 where rows are no multiple of 32)
  quantised.gguf           tiny/llama3 in Q8_0, Q4_0, Q4_1, Q5_0, F16; quantised.safetensors: its weights decoded, HF order
  qwen2.gguf               metadata and two tensors of a qwen2 file with YaRN
  fp8/, fp8-channel/       tiny/llama3 in FP8, blocks of 16x12 (DeepSeek's form) and one scale a row (compressed-tensors)
  fp8.safetensors, fp8-channel.safetensors    the same decoded
"""
import json
import os
import shutil

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.torch import load_file, save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
OUT = os.path.join(HERE, "storage")
SEED = 20


def blocks():
    """Random bits; the half-precision scales alone are kept finite."""
    generator = np.random.default_rng(SEED)
    halves = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82],
              Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.F16: [0], Type.BF16: [0], Type.F32: []}
    tensors = {}
    for kind, places in halves.items():
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        rows, per_row = 3, max(1, 64 // elements) * (2 if elements == 256 else 1)
        raw = generator.integers(0, 256, (rows, per_row, size), dtype=np.uint8)
        if kind == Type.F32:
            raw = generator.standard_normal((rows, per_row)).astype(np.float32).view(np.uint8).reshape(rows, per_row, 4)
        elif kind == Type.BF16:
            raw[..., 1] &= 0xBF  # no infinities
        for place in places if kind != Type.BF16 else []:
            scale = (generator.standard_normal((rows, per_row, 1)) * 0.01).astype(np.float16)
            raw[..., place:place + 2] = scale.view(np.uint8).reshape(rows, per_row, 2)
        raw = raw.reshape(rows, -1)
        values = gguf.dequantize(raw.view(np.float16) if kind == Type.F16 else raw.view(np.float32) if kind == Type.F32 else raw, kind)
        tensors[kind.name + ".raw"] = torch.from_numpy(raw.copy())
        tensors[kind.name + ".values"] = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32).reshape(rows, -1).copy())
    save_file(tensors, os.path.join(OUT, "blocks.safetensors"))


def interleave(rows, heads):
    """llama.cpp's order: the two halves of a rotary pair become neighbours."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def deinterleave(rows, heads):
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


MODULES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
           "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
           "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
           "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
ENDS = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}


def stored_name(name):
    if name in ENDS:
        return ENDS[name]
    _, _, layer, module = name.split(".", 3)
    module, kind = module.rsplit(".", 1)
    return f"blk.{layer}.{MODULES[module]}.{kind}"


def metadata(writer, config, arch):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def placeholder_tokens(writer, count):
    writer.add_token_list([f"t{i}" for i in range(count)])
    writer.add_token_scores([-float(i) for i in range(count)])
    writer.add_add_bos_token(True)


def sentencepiece_tokens(writer, folder):
    """A byte-fallback tokenizer.json as llama.cpp keeps it: a piece's score says how early it is merged."""
    model = json.load(open(os.path.join(folder, "tokenizer.json")))["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    scores = dict.fromkeys(pieces, -1e9)
    for rank, pair in reversed(list(enumerate(model["merges"]))):
        scores["".join(pair if isinstance(pair, list) else pair.split(" "))] = -float(rank)
    kinds = gguf.TokenType
    special = {"<unk>": kinds.UNKNOWN, "<s>": kinds.CONTROL, "</s>": kinds.CONTROL}
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([scores[piece] for piece in pieces])
    writer.add_token_types([special.get(p, kinds.BYTE if p.startswith("<0x") else kinds.NORMAL) for p in pieces])
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)


def rope_factors(rope, head_dim):
    """llama.cpp's convert_hf_to_gguf: what each frequency is divided by."""
    factor, low, high, original = (rope[k] for k in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
    values = []
    for frequency in 1.0 / (rope["rope_theta"] ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)):
        wavelength = 2 * np.pi / frequency
        if wavelength < original / high:
            values.append(1.0)
        elif wavelength > original / low:
            values.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            values.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(values, dtype=np.float32)


def as_gguf(folder, target, kinds=None, arch="llama"):
    """`kinds`: module -> ggml type. llama.cpp reorders rotary rows for llama alone. Returns what was stored, decoded, in Hugging Face's order."""
    config = json.load(open(os.path.join(folder, "config.json")))
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    config.setdefault("rope_parameters", {"rope_type": "default", "rope_theta": config.get("rope_theta")})
    writer = gguf.GGUFWriter(os.path.join(OUT, target), arch)
    metadata(writer, config, arch)
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        sentencepiece_tokens(writer, folder)
    else:
        placeholder_tokens(writer, config["vocab_size"])
    if config["rope_parameters"]["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config["rope_parameters"], config["head_dim"]))
    decoded = {}
    for name, tensor in sorted(load_file(os.path.join(folder, "model.safetensors")).items()):
        values = tensor.float().numpy()
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        heads = next((n for module, n in heads.items() if module in name), 0) if arch == "llama" else 0
        stored = interleave(values, heads) if heads else values
        kind = (kinds or {}).get(name.split(".")[-2], Type.F32)
        if stored.ndim == 1:
            kind = Type.F32
        data = gguf.quantize(np.ascontiguousarray(stored), kind)
        writer.add_tensor(stored_name(name), data, raw_dtype=kind)
        values = gguf.dequantize(data, kind).astype(np.float32).reshape(stored.shape)
        decoded[name] = torch.from_numpy(np.ascontiguousarray(deinterleave(values, heads) if heads else values))
    finish(writer)
    return decoded


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def qwen2():
    writer = gguf.GGUFWriter(os.path.join(OUT, "qwen2.gguf"), "qwen2")
    metadata(writer, {"max_position_embeddings": 131072, "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 48,
                      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-6,
                      "rope_parameters": {"rope_theta": 1e6}, "vocab_size": 16, "bos_token_id": 1, "eos_token_id": 2}, "qwen2")
    placeholder_tokens(writer, 16)
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(4.0)
    writer.add_rope_scaling_orig_ctx_len(32768)
    writer.add_tensor("token_embd.weight", np.arange(512, dtype=np.float32).reshape(16, 32))
    writer.add_tensor("blk.0.attn_q.weight", np.arange(1024, dtype=np.float32).reshape(32, 32))
    writer.add_tensor("blk.0.attn_q.bias", np.arange(32, dtype=np.float32))
    finish(writer)


def fp8(name, quantization, block):
    """`block`: rows and columns of one scale; (1, None) for one a row."""
    source, folder = os.path.join(HERE, "tiny", "llama3"), os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    config = json.load(open(os.path.join(source, "config.json")))
    config["quantization_config"] = quantization
    json.dump(config, open(os.path.join(folder, "config.json"), "w"), indent=2)
    suffix = "_scale_inv" if quantization["quant_method"] == "fp8" else "_scale"
    tensors, decoded = {}, {}
    for key, tensor in load_file(os.path.join(source, "model.safetensors")).items():
        if "_proj" not in key or "o_proj" in key:  # o_proj is not converted
            tensors[key], decoded[key] = tensor, tensor.float()
            continue
        rows, columns = block[0], block[1] or tensor.shape[1]
        weight = tensor.float()
        grid = torch.empty(-(-weight.shape[0] // rows), -(-weight.shape[1] // columns))
        for i in range(grid.shape[0]):
            for j in range(grid.shape[1]):
                grid[i, j] = weight[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns].abs().max() / 448
        if suffix == "_scale":
            grid = grid.to(torch.bfloat16)
        spread = grid.float().repeat_interleave(rows, 0)[:weight.shape[0]].repeat_interleave(columns, 1)[:, :weight.shape[1]]
        tensors[key] = (weight / spread).to(torch.float8_e4m3fn)
        tensors[key + suffix] = grid
        decoded[key] = tensors[key].float() * spread
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    save_file(decoded, os.path.join(OUT, name + ".safetensors"))


def main():
    os.makedirs(OUT, exist_ok=True)
    blocks()
    for name in ("llama3", "biased"):
        as_gguf(os.path.join(HERE, "tiny", name), name + ".gguf")
    for arch in ("qwen2", "qwen3"):
        as_gguf(os.path.join(HERE, "tiny", arch), arch + "-model.gguf", arch=arch)
    kinds = {"q_proj": Type.Q4_1, "k_proj": Type.Q8_0, "v_proj": Type.Q5_0, "o_proj": Type.Q4_0, "gate_proj": Type.Q5_1,
             "up_proj": Type.BF16, "down_proj": Type.F16, "embed_tokens": Type.Q8_0}
    save_file(as_gguf(os.path.join(HERE, "tiny", "llama3"), "quantised.gguf", kinds), os.path.join(OUT, "quantised.safetensors"))
    kinds = dict.fromkeys(["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "embed_tokens"], Type.Q8_0) | {"down_proj": Type.F16}
    as_gguf(os.path.join(HERE, "..", "..", "..", "resources", "demo", "stories260K"), "stories260K.gguf", kinds)
    qwen2()
    fp8("fp8", {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [16, 12],
                "modules_to_not_convert": ["lm_head", "model.layers.0.self_attn.o_proj", "model.layers.1.self_attn.o_proj"]}, (16, 12))
    fp8("fp8-channel", {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
                        "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
                            "num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}}}}, (1, None))


if __name__ == "__main__":
    main()
