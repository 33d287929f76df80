#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measuring acceptance with mla-draft beside Transformers' assisted generation, on the same pair and prompts.

    bench_acceptance.py --target DIR --drafts DIR,DIR,... [--tasks A,B,...] [--limit N] [--tokens N] [--repeats N]
                        [--parts engine,sweep]

1. Tokens per second of the native engine and of `generate(assistant_model=...)` for each draft: fp32, greedy, k = 4,
   warmed up, in turns. Aim: at least twice the tokens per second.
2. Acceptance of every draft on every task for k = 1..8: by one replay per draft (whole processes, the target's texts
   and loading included), and by assisted generation of every text for every k (generation alone, models loaded).
   Aim: at least 20 times faster.

Both must make the same texts, which is checked. Times are wall times on all cores: run it on an idle machine.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_PROMPT_TOKENS = 256
K, MOST_K = 4, 8


def prompts_of(arguments):
    """Token ids of the first prompts of each task, cut as `--max-prompt-tokens` does."""
    tokenizer = AutoTokenizer.from_pretrained(arguments.target)
    prompts = []
    for task in arguments.tasks:
        lines = (arguments.tasks_dir / f"{task}.jsonl").read_text().splitlines()[: arguments.limit]
        prompts += [tokenizer(json.loads(line)["turns"][0]).input_ids[:MOST_PROMPT_TOKENS] for line in lines]
    return prompts


def mla_draft(arguments, draft, *options):
    """Runs `accept` on the same prompts and returns its JSON."""
    command = [arguments.program, "accept", "--target", arguments.target, "--draft", draft,
               "--tasks", ",".join(arguments.tasks), "--tasks-dir", arguments.tasks_dir,
               "--limit", arguments.limit, "--max-prompt-tokens", MOST_PROMPT_TOKENS,
               "--max-new-tokens", arguments.tokens, "--json", "--quiet", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True).eval()


def assisted(target, draft, prompt, tokens, k):
    """New ids of one greedy text, k tokens drafted per step, as Transformers documents it."""
    draft.generation_config.num_assistant_tokens = k
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    ids = torch.tensor([prompt])
    with torch.no_grad():
        out = target.generate(ids, attention_mask=torch.ones_like(ids), assistant_model=draft, max_new_tokens=tokens,
                              do_sample=False, temperature=None, top_k=None, top_p=None, repetition_penalty=1.0)
    return out[0, len(prompt):].tolist()


def all_texts(arguments, target, draft, prompts, k):
    """Seconds and number of tokens of all prompts, one after another."""
    begun = time.perf_counter()
    made = sum(len(assisted(target, draft, prompt, arguments.tokens, k)) for prompt in prompts)
    return time.perf_counter() - begun, made


def compare_engines(arguments, target, drafts, prompts):
    for folder, draft in drafts.items():
        all_texts(arguments, target, draft, prompts[:1], K)
        ours, theirs = [], []
        for _ in range(arguments.repeats):
            outcome = mla_draft(arguments, folder, "--method", "speculative", "-k", K)["pooled"]
            ours.append(outcome["tokens_per_second"])
            seconds, made = all_texts(arguments, target, draft, prompts, K)
            theirs.append(made / seconds)
            if made != outcome["tokens"]:
                sys.exit(f"{folder}: mla-draft made {outcome['tokens']} tokens, Transformers {made}")
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        print(f"engine  {pathlib.Path(folder).name:32} mla-draft {ours:6.1f} tokens/s, Transformers {theirs:6.1f}, "
              f"ratio {ours / theirs:.2f}", flush=True)


def compare_sweeps(arguments, target, drafts, prompts):
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        for draft in drafts:
            mla_draft(arguments, draft, "--sweep-k", MOST_K, "--study", os.path.join(folder, "sweep.h5"))
        ours = time.perf_counter() - begun
    theirs = sum(all_texts(arguments, target, draft, prompts, k)[0]
                 for draft in drafts.values() for k in range(1, MOST_K + 1))
    print(f"sweep   {len(drafts)} drafts x {len(arguments.tasks)} tasks x k 1..{MOST_K}: mla-draft {ours:.1f} s, "
          f"Transformers {theirs:.1f} s, ratio {theirs / ours:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--drafts", required=True, type=lambda text: text.split(","))
    parser.add_argument("--tasks", default="human_eval,instructions,questions,summaries", type=lambda t: t.split(","))
    parser.add_argument("--tasks-dir", default=ROOT / "resources" / "tasks", type=pathlib.Path)
    parser.add_argument("--limit", default=1, type=int, help="prompts per task")
    parser.add_argument("--tokens", default=32, type=int, help="new tokens per prompt")
    parser.add_argument("--repeats", default=3, type=int)
    parser.add_argument("--parts", default="engine,sweep", type=lambda text: text.split(","))
    parser.add_argument("--program", default=ROOT / "build" / "bin" / "mla-draft", type=pathlib.Path)
    arguments = parser.parse_args()
    prompts = prompts_of(arguments)
    target, drafts = load(arguments.target), {folder: load(folder) for folder in arguments.drafts}
    if "engine" in arguments.parts:
        compare_engines(arguments, target, drafts, prompts)
    if "sweep" in arguments.parts:
        compare_sweeps(arguments, target, drafts, prompts)


if __name__ == "__main__":
    main()
