# SPDX-License-Identifier: GPL-3.0-or-later
"""Speculative decoding by Hugging Face Transformers' assisted generation, one prompt at a time.

{"open": {"target", "draft": folders, "plain": without the draft, "k", "max_new_tokens", "min_new_tokens",
          "eos": [ids], "suppress": [ids], "temperature", "top_k", "top_p", "seed", "device", "threads", "dtype"}}
    -> {"software", "device"}
{"prompt": [ids], "index": i}
    -> {"ids", "steps": [[position, accepted]], "own": {"drafted", "accepted"}, "seconds",
        "draft_seconds", "verify_seconds": parts of them, absent when plain}

`steps` are recounted from the ids: the library's own count (`own`) can be one short at the end of a text.
"""
import platform
import time

import json_lines

_state = None


class _Recorder:
    """What the candidate generator proposed at each step, what the library says was accepted, and the time of both models."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.proposals, self.accepted, self.draft_seconds, self.verify_seconds = [], 0, 0.0, 0.0
        self.proposing, self.begun = False, 0.0

    def watch(self, target):
        """Times the target's passes; a draft that is the target itself passes through it too, while it proposes."""

        def before(*_):
            self.begun = time.perf_counter()

        def after(*_):
            if not self.proposing:
                self.verify_seconds += time.perf_counter() - self.begun

        target.register_forward_pre_hook(before)
        target.register_forward_hook(after)

    def wrap(self, generator):
        recorder, propose, update = self, generator.get_candidates, generator.update_candidate_strategy

        def get_candidates(instance, input_ids, *args, **kwargs):
            begun, recorder.proposing = time.perf_counter(), True
            candidates, logits = propose(instance, input_ids, *args, **kwargs)
            recorder.draft_seconds += time.perf_counter() - begun
            recorder.proposing = False
            start = input_ids.shape[1]
            recorder.proposals.append((start, candidates[0, start:].tolist()))
            return candidates, logits

        def update_candidate_strategy(instance, input_ids, scores, num_matches):
            recorder.accepted += int(num_matches)
            return update(instance, input_ids, scores, num_matches)

        generator.get_candidates, generator.update_candidate_strategy = get_candidates, update_candidate_strategy


def _load(folder, settings):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=getattr(torch, settings["dtype"]), trust_remote_code=True, local_files_only=True
    )
    return model.to(settings["device"]).eval()


def _open(settings):
    global _state
    import torch
    import transformers
    from transformers.generation.candidate_generator import AssistedCandidateGenerator

    transformers.utils.logging.set_verbosity_error()
    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    target = _load(settings["target"], settings)
    draft, recorder = None, _Recorder()
    if not settings["plain"]:
        draft = target if settings["draft"] == settings["target"] else _load(settings["draft"], settings)
        draft.generation_config.num_assistant_tokens = settings["k"]
        draft.generation_config.num_assistant_tokens_schedule = "constant"
        draft.generation_config.assistant_confidence_threshold = 0.0  # the default stops drafts early
        recorder.wrap(AssistedCandidateGenerator)
        recorder.watch(target)
    _state = (settings, target, draft, recorder)
    return {
        "software": f"transformers {transformers.__version__}, torch {torch.__version__}, Python {platform.python_version()}",
        "device": str(target.device),
    }


def _options(settings):
    options = {
        "max_new_tokens": settings["max_new_tokens"],
        "eos_token_id": settings["eos"] or None,
        "pad_token_id": (settings["eos"] or [0])[0],
        "do_sample": settings["temperature"] > 0,
    }
    if settings["min_new_tokens"]:
        options["min_new_tokens"] = settings["min_new_tokens"]
    if settings["suppress"]:
        options["suppress_tokens"] = settings["suppress"]
    if options["do_sample"]:
        options |= {"temperature": settings["temperature"], "top_k": settings["top_k"], "top_p": settings["top_p"]}
    else:  # what a model's generation_config.json asks for is not what is measured here
        options |= {"temperature": None, "top_k": None, "top_p": None}
    return options


def _steps(proposals, start, ids):
    """[position, accepted]: the proposed tokens that the text confirms, by the ids alone."""
    steps = []
    for length, proposed in proposals:
        position = length - start
        accepted = 0
        while accepted < len(proposed) and ids[position + accepted : position + accepted + 1] == [proposed[accepted]]:
            accepted += 1
        steps.append([position, accepted])
    return steps


def _run(request):
    import torch

    settings, target, draft, recorder = _state
    prompt = torch.tensor([request["prompt"]], device=target.device)
    recorder.clear()
    torch.manual_seed(settings["seed"] * 1_000_003 + request["index"])
    assistant = {"assistant_model": draft} if draft else {}
    begun = time.perf_counter()
    with torch.no_grad():
        out = target.generate(
            prompt, attention_mask=torch.ones_like(prompt), repetition_penalty=1.0, **assistant, **_options(settings)
        )
    seconds = time.perf_counter() - begun
    ids = out[0, prompt.shape[1] :].tolist()
    if not draft:
        return {"ids": ids, "steps": [], "own": {"drafted": 0, "accepted": 0}, "seconds": seconds}
    drafted = sum(len(proposed) for _, proposed in recorder.proposals)
    return {
        "ids": ids,
        "steps": _steps(recorder.proposals, prompt.shape[1], ids),
        "own": {"drafted": drafted, "accepted": recorder.accepted},
        "seconds": seconds,
        "draft_seconds": recorder.draft_seconds,
        "verify_seconds": recorder.verify_seconds,
    }


def _handle(request, _answer):
    return _open(request["open"]) if "open" in request else _run(request)


if __name__ == "__main__":
    json_lines.serve(_handle)
