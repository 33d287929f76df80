# SPDX-License-Identifier: GPL-3.0-or-later
"""Speculative decoding by vLLM with a draft model, one prompt at a time; requests and answers as in hf_backend.py.

vLLM takes its first token from the prefill, without a draft: no step covers position 0. A step's accepted tokens are
told from how many ids it delivered; what vLLM accepts past the end of a text is not among them, but is in `own`.
A draft that brings the plugin of the layout vllm-plugin runs by it, without code of Transformers.
"""
import json
import os
import platform
import time

import draft_plugin
import json_lines

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

_state = None


def _is_stock_mla(directory):
    path = os.path.join(directory, "config.json")
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8") as file:
        return json.load(file).get("model_type") == "deepseek_v2"


def _engine(settings, speculative):
    models = [model for model in (settings["target"], settings["draft"]) if model]
    stock = any(_is_stock_mla(model) for model in models)
    if stock:  # vLLM's MLA kernels for CPUs take one latent size only, and no ordinary target beside it
        os.environ.setdefault("VLLM_MLA_DISABLE", "1")
    import vllm

    plugins = [model for model in models if draft_plugin.travels_in(model)]
    if plugins:
        draft_plugin.register(plugins[0])
    options = {"speculative_config": speculative} if speculative else {}
    if stock:  # in eager mode the operator for CPUs misreads the strided rotary queries of deepseek_v2
        options["compilation_config"] = {"custom_ops": ["-rotary_embedding"]}
    return vllm.LLM(
        model=settings["target"],
        dtype=settings["dtype"],
        trust_remote_code=not plugins,  # the class is the plugin's then
        max_model_len=settings["max_model_len"],
        max_num_seqs=1,
        seed=settings["seed"],
        enforce_eager=True,
        disable_log_stats=False,
        generation_config="vllm",  # not what the model's generation_config.json asks for
        enable_prefix_caching=False,
        **options,
    )


def _open(settings):
    global _state
    import torch

    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    if settings["plain"]:
        speculative = None
    else:
        speculative = {"method": "draft_model", "model": settings["draft"], "num_speculative_tokens": settings["k"]}
    _state = (settings, _engine(settings, speculative))
    import vllm

    return {
        "software": f"vllm {vllm.__version__}, torch {torch.__version__}, Python {platform.python_version()}",
        "device": str(vllm.platforms.current_platform.device_type),
    }


def _sampling(settings, index):
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    sampled = settings["temperature"] > 0
    return SamplingParams(
        max_tokens=settings["max_new_tokens"],
        min_tokens=settings["min_new_tokens"],
        stop_token_ids=settings["eos"],
        temperature=settings["temperature"],
        top_k=settings["top_k"] if sampled else 0,
        top_p=settings["top_p"] if sampled else 1.0,
        logit_bias={str(token): -100.0 for token in settings["suppress"]} or None,
        seed=settings["seed"] * 1_000_003 + index if sampled else None,
        output_kind=RequestOutputKind.DELTA,
        detokenize=False,
    )


def _counters(engine):
    values = {metric.name: getattr(metric, "value", None) for metric in engine.get_metrics()}
    return values.get("vllm:spec_decode_num_draft_tokens") or 0, values.get("vllm:spec_decode_num_accepted_tokens") or 0


def _run(request):
    settings, llm = _state
    before = _counters(llm)
    engine = llm.llm_engine
    begun = time.perf_counter()
    engine.add_request(
        f"prompt-{request['index']}-{begun}", {"prompt_token_ids": request["prompt"]}, _sampling(settings, request["index"])
    )
    ids, steps = [], []
    while engine.has_unfinished_requests():
        for output in engine.step():
            fresh = list(output.outputs[0].token_ids)
            if ids and fresh:
                steps.append([len(ids), len(fresh) - 1])
            ids += fresh
    seconds = time.perf_counter() - begun
    after = _counters(llm)
    return {
        "ids": ids,
        "steps": steps,
        "own": {"drafted": after[0] - before[0], "accepted": after[1] - before[1]},
        "seconds": seconds,
    }


def _handle(request, _answer):
    return _open(request["open"]) if "open" in request else _run(request)


if __name__ == "__main__":
    json_lines.serve(_handle)
