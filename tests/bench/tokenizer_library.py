# SPDX-License-Identifier: GPL-3.0-or-later
"""The `tokenizers` library's half of bench_tokenizer.

    python tokenizer_library.py SOURCE OUT [TOKENIZER.json]

writes OUT/text (lines, each as 32-bit length and bytes), OUT/tokenizer.json (a byte-level BPE with
150,000 tokens, unless one is given) and OUT/library.json: processor seconds and token count.
"""
import json
import pathlib
import random
import shutil
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import tokenizer_parity  # noqa: E402
from tokenizers import Tokenizer, pre_tokenizers  # noqa: E402

SIZE = 150000
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
           r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def words(lines):
    """The words of the text, then made-up ones without end."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for line in lines:
        for word, _ in split.pre_tokenize_str(line.decode("utf-8", "replace")):
            yield word[:12]
    source = random.Random(20240607)
    syllables = "ka to re mi lo sun ter ing ed pre con ally ness un str ight qu ou er an".split()
    while True:
        yield "\u0120" + "".join(source.choice(syllables) for _ in range(source.randrange(2, 6)))


def make_tokenizer(lines):
    """Every prefix of every word is a token, made of the prefix before it and one more character."""
    vocab = {token: i for i, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    for word in words(lines):
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab and len(vocab) < SIZE:
                vocab[word[:end]] = len(vocab)
                merges.append([word[:end - 1], word[end - 1]])
        if len(vocab) == SIZE:
            break
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
            "post_processor": None, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": False, "vocab": vocab, "merges": merges}}


def main():
    root, out = map(pathlib.Path, sys.argv[1:3])
    lines = tokenizer_parity.source_lines(root)
    (out / "text").write_bytes(b"".join(struct.pack("<I", len(line)) + line for line in lines))
    path = out / "tokenizer.json"
    if len(sys.argv) > 3:
        shutil.copy(sys.argv[3], path)
    else:
        path.write_text(json.dumps(make_tokenizer(lines)))
    loads = []
    for _ in range(3):
        start = time.process_time()
        tokenizer = Tokenizer.from_file(str(path))
        loads.append(time.process_time() - start)
    texts = [line.decode("utf-8", "replace") for line in lines]
    start = time.process_time()
    tokens = sum(len(tokenizer.encode(text).ids) for text in texts)
    encode = time.process_time() - start
    (out / "library.json").write_text(json.dumps({"load": min(loads), "encode": encode, "tokens": tokens}))


if __name__ == "__main__":
    main()
