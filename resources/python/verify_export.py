# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an exported draft as its users do and compares it with what is expected of it.

{"open": {"stack": "transformers" | "vllm", "folder", "reference": safetensors file, "plugin": register the package
          that stands in the folder, "custom_code", "device", "threads", "max_model_len"}}
    -> {"software", "class"}
{"case": i, "prompt": [ids], "new_tokens": n}
    -> {"difference", "greedy": [ids], "cache": [elements a token, per layer] or absent}

The reference holds of each case `ids.i` [T] and `logits.i` [T, V]; `difference` is the largest one of a logit, in
float32. Of vLLM the likeliest tokens at each position are compared, all but the last of a text.
"""
import os
import platform

import draft_plugin
import json_lines

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
# vLLM's own kernel for latent caches on CPUs takes one shape only.
os.environ.setdefault("VLLM_MLA_DISABLE", "1")

_LIKELIEST = 256  # vLLM builds a Python object for each logit it hands out

_stack = None


def _reference(path, case):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.get_tensor(f"ids.{case}"), file.get_tensor(f"logits.{case}")


class _Transformers:
    def __init__(self, settings):
        import torch
        import transformers

        transformers.utils.logging.set_verbosity_error()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            settings["folder"], dtype=torch.float32, trust_remote_code=settings["custom_code"], local_files_only=True
        )
        self.model = self.model.to(settings["device"]).eval()
        self.model.generation_config.eos_token_id = None  # texts of equal length are compared
        self.software = f"transformers {transformers.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
        self.name = type(self.model).__name__

    def compare(self, ids, logits, prompt, new_tokens):
        import torch

        with torch.no_grad():
            ours = self.model(ids[None].to(self.model.device)).logits[0].float().cpu()
            start = torch.tensor([prompt], device=self.model.device)
            out = self.model.generate(
                start,
                attention_mask=torch.ones_like(start),
                max_new_tokens=new_tokens,
                do_sample=False,
                repetition_penalty=1.0,
                pad_token_id=0,
                temperature=None,
                top_k=None,
                top_p=None,
                return_dict_in_generate=True,
            )
        layers = getattr(out.past_key_values, "layers", [])
        return {
            "difference": float((ours - logits).abs().max()),
            "greedy": out.sequences[0, len(prompt) :].tolist(),
            "cache": [sum(t.numel() // t.shape[-2] for t in (layer.keys, layer.values)) for layer in layers],
        }


class _Vllm:
    def __init__(self, settings):
        import torch
        import vllm

        if settings["plugin"]:
            draft_plugin.register(settings["folder"])
        self.engine = vllm.LLM(
            model=settings["folder"],
            dtype="float32",
            trust_remote_code=settings["custom_code"],
            max_model_len=settings["max_model_len"],
            max_num_seqs=1,
            enforce_eager=True,
            generation_config="vllm",
            enable_prefix_caching=False,
            logprobs_mode="raw_logits",
            max_logprobs=_LIKELIEST,
            # In eager mode this op reads the stride of DeepSeek's rotary queries wrongly on CPUs.
            compilation_config={"custom_ops": ["-rotary_embedding"]},
        )
        self.software = f"vllm {vllm.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
        self.name = self.engine.apply_model(lambda model: type(model).__name__)[0]

    def compare(self, ids, logits, prompt, new_tokens):
        from vllm import SamplingParams

        count = min(_LIKELIEST, logits.shape[-1])
        whole = SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=count, ignore_eos=True, detokenize=False)
        text = self.engine.generate({"prompt_token_ids": ids.tolist()}, whole, use_tqdm=False)[0]
        difference = 0.0
        for expected, given in zip(logits, text.prompt_logprobs[1:]):
            for token, entry in given.items():
                difference = max(difference, abs(entry.logprob - float(expected[token])))
        greedy = SamplingParams(max_tokens=new_tokens, temperature=0, ignore_eos=True, detokenize=False)
        out = self.engine.generate({"prompt_token_ids": prompt}, greedy, use_tqdm=False)[0].outputs[0]
        return {"difference": difference, "greedy": list(out.token_ids)}


def _open(settings):
    global _stack
    import torch

    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    kind = _Vllm if settings["stack"] == "vllm" else _Transformers
    _stack = (settings, kind(settings))
    return {"software": _stack[1].software, "class": _stack[1].name}


def _handle(request, _answer):
    if "open" in request:
        return _open(request["open"])
    settings, stack = _stack
    ids, logits = _reference(settings["reference"], request["case"])
    return stack.compare(ids, logits, request["prompt"], request["new_tokens"])


if __name__ == "__main__":
    json_lines.serve(_handle)
