#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a checkpoint with the shapes of Llama-3.2-1B and random bfloat16 weights (2.5 GB; numpy only).

usage: write_random_checkpoint.py OUT_DIR
"""
import json
import os
import struct
import sys

import numpy as np

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16", "bos_token_id": 128000, "eos_token_id": 128001,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192}}


def shapes():
    c = CONFIG
    hidden, inner = c["hidden_size"], c["intermediate_size"]
    keys = c["num_key_value_heads"] * c["head_dim"]
    yield "model.embed_tokens.weight", (c["vocab_size"], hidden)
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "self_attn.q_proj.weight", (hidden, hidden)
        yield layer + "self_attn.k_proj.weight", (keys, hidden)
        yield layer + "self_attn.v_proj.weight", (keys, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, hidden)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "mlp.gate_proj.weight", (inner, hidden)
        yield layer + "mlp.up_proj.weight", (inner, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, inner)
    yield "model.norm.weight", (hidden,)


def main(out):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "config.json"), "w") as file:
        json.dump(CONFIG, file, indent=2)
    header, end = {}, 0
    for name, shape in shapes():
        begin, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    # A stretch of random numbers of about 0.02, written over and over.
    numbers = (np.random.default_rng(0).standard_normal(1 << 24) * 0.02).astype(np.float32)
    stretch = (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    with open(os.path.join(out, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, end, len(stretch)):
            file.write(stretch[:end - begin])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
