# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders prompts by a tokenizer's chat template, as Hugging Face Transformers does.

{"tokenizer": folder}  ->  {"template": bool, "dated": bool, "software": text}
{"prompt": text}       ->  {"ids": [..], "text": rendered}: one user turn, then the generation prompt
"""
import sys

import json_lines

# A tokenizer needs no tensors, and Transformers starts in a third of the time without them.
sys.modules["torch"] = None

_tokenizer = None


def _open(folder):
    global _tokenizer
    import transformers

    _tokenizer = transformers.AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    template = _tokenizer.chat_template
    return {
        "template": bool(template),
        # Some templates write today's date into the prompt.
        "dated": "strftime_now" in str(template),
        "software": f"transformers {transformers.__version__}",
    }


def _render(prompt):
    messages = [{"role": "user", "content": prompt}]
    text = _tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    # The template writes the special tokens itself.
    ids = _tokenizer(text, add_special_tokens=False)["input_ids"]
    return {"ids": list(ids), "text": text}


def _handle(request, _answer):
    if "tokenizer" in request:
        return _open(request["tokenizer"])
    return _render(request["prompt"])


if __name__ == "__main__":
    json_lines.serve(_handle)
