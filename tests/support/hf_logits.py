# SPDX-License-Identifier: GPL-3.0-or-later
"""What Hugging Face Transformers computes for model directories, for tests in C++.

    hf_logits.py DIR... --ids 1,2,3 [--out FOLDER] [--greedy N [--prompt 1,2]] [--stock]
                 [--decode N]

float32 on the CPU, offline, with the directories' own code, or with --stock without any. FOLDER/NAME.safetensors receives `logits` [T, vocab] F32, NAME being the
directory's last part. Greedy text continues --prompt (default: the ids). One JSON object a directory, one a line on stdout:
{name, model_class, argmax [T], spread (standard deviation of the logits), cache_elements [per layer, for one token],
 greedy [up to N new ids, EOS included], greedy_margin (smallest gap between the two best logits on the way),
 decoded {tokens: cached after N new tokens behind the ids, elements: [per layer, all that the cache then holds]}}
"""
import argparse
import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def batch(text):
    return torch.tensor([[int(i) for i in text.split(",")]])


@torch.no_grad()
def report(directory, arguments):
    model = AutoModelForCausalLM.from_pretrained(directory, trust_remote_code=not arguments.stock, dtype=torch.float32).eval()
    ids = batch(arguments.ids)
    output = model(ids, use_cache=True)
    logits = output.logits[0].contiguous()
    name = os.path.basename(os.path.normpath(directory))
    if arguments.out:
        save_file({"logits": logits}, os.path.join(arguments.out, f"{name}.safetensors"))
    result = {
        "name": name,
        "model_class": type(model).__name__,
        "argmax": logits.argmax(-1).tolist(),
        "spread": float(logits.double().std()),
        "cache_elements": [sum(t.numel() // t.shape[-2] for t in (layer.keys, layer.values)) for layer in output.past_key_values.layers],
    }
    if arguments.greedy:
        prompt = batch(arguments.prompt or arguments.ids)
        full = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=arguments.greedy, do_sample=False)
        best = model(full).logits[0, prompt.shape[1] - 1:-1].topk(2).values
        result |= {"greedy": full[0, prompt.shape[1]:].tolist(), "greedy_margin": float((best[:, 0] - best[:, 1]).min())}
    if arguments.decode:
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=arguments.decode, min_new_tokens=arguments.decode,
                             do_sample=False, return_dict_in_generate=True)
        layers = out.past_key_values.layers
        result["decoded"] = {
            "tokens": int(out.past_key_values.get_seq_length()),
            "elements": [sum(t.numel() for t in (layer.keys, layer.values)) for layer in layers],
        }
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--out")
    parser.add_argument("--greedy", type=int, default=0)
    parser.add_argument("--prompt")
    parser.add_argument("--decode", type=int, default=0)
    parser.add_argument("--stock", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for directory in arguments.directories:
        print(json.dumps(report(directory, arguments)), flush=True)


if __name__ == "__main__":
    main()
