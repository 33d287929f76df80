# SPDX-License-Identifier: GPL-3.0-or-later
"""What Hugging Face Transformers computes for a model directory, for tests in C++.

    hf_logits.py DIR --ids 1,2,3 [--out logits.safetensors] [--greedy N]

float32 on the CPU, offline, with the directory's own code. --out receives `logits` [T, vocab] F32. One JSON object on stdout:
{model_class, argmax [T], spread (standard deviation of the logits), cache_elements [per layer, for one token],
 greedy [up to N new ids, EOS included], greedy_margin (smallest gap between the two best logits on the way)}
"""
import argparse
import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--out")
    parser.add_argument("--greedy", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(arguments.directory, trust_remote_code=True, dtype=torch.float32).eval()
    ids = torch.tensor([[int(i) for i in arguments.ids.split(",")]])
    output = model(ids, use_cache=True)
    logits = output.logits[0].contiguous()
    if arguments.out:
        save_file({"logits": logits}, arguments.out)
    report = {
        "model_class": type(model).__name__,
        "argmax": logits.argmax(-1).tolist(),
        "spread": float(logits.double().std()),
        "cache_elements": [(layer.keys.numel() + layer.values.numel()) // ids.shape[1] for layer in output.past_key_values.layers],
    }
    if arguments.greedy:
        full = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=arguments.greedy, do_sample=False)
        best = model(full).logits[0, ids.shape[1] - 1:-1].topk(2).values
        report |= {"greedy": full[0, ids.shape[1]:].tolist(), "greedy_margin": float((best[:, 0] - best[:, 1]).min())}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
