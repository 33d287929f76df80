# SPDX-License-Identifier: GPL-3.0-or-later
"""Ids and decoded texts of the `tokenizers` library on many lines.

    python tokenizer_parity.py SOURCE OUT TOKENIZER...

TOKENIZER is a tokenizer.json, or one compressed as .xz. Writes under OUT: `lines` (each as length and
bytes), and for tokenizer number i `i.json` and `i.answers` (each as number of ids, ids, length and
bytes of the text decoded from them). Numbers are little-endian and have 32 bits.
"""
import json
import lzma
import pathlib
import random
import struct
import sys

from tokenizers import Tokenizer

SPACES = [" ", "  ", "\n", "\t", "\r\n", "   ", "\u00a0", "\u3000", "\u2028", "\u0085", "\u180e", "\u200b",
          "\x0b", "\x0c", "\x1c", "\x00", "\ufeff"]
ENDINGS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'LL", "'d", "'\u017f", "\u2019s"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<|begin_of_text|>",
            "<|eot_id|>", "<think>", "<0x0A>", "<tool_call>", "<repo_name>", "<|begin|>", "<mask>", "<pad>"]


def source_lines(root):
    """Every line of the repository's own text."""
    lines = []
    for folder in ("core", "widgets", "app", "tests", "installer", "resources"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".cpp", ".h", ".py", ".cmake", ".txt", ".sh", ".jsonl", ".md"}:
                lines += path.read_bytes().splitlines(keepends=True)
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        lines.append((root / name).read_bytes())
    return lines


def task_lines(source):
    """Prompts as the task sets have them: questions, instructions, functions, sums."""
    subjects = ["the river", "photosynthesis", "a list of integers", "her brother Tom", "quantum physics",
                "Paris in 1889", "the stock market", "caf\u00e9 culture", "a binary tree", "Mr. O'Neil"]
    frames = ["What is {0} and why does it matter to {1}?", "Explain {0} in {2} words.\n\n### Response:\n",
              "def solve_{2}(xs):\n    \"\"\"Returns {0} for {1}.\n    >>> solve_{2}([1, 2])\n    {2}\n"
              "    \"\"\"\n", "Q: If {0} costs ${2}.50 and {1} costs ${2}, what is the total?\nA:",
              "Summarize: {0} met {1} on {2}/12/2021; \u201cwell,\u201d they said \u2014 it's fine\u2026"]
    return [source.choice(frames).format(source.choice(subjects), source.choice(subjects),
                                         source.randrange(10000)).encode() for _ in range(2000)]


def code_point_lines(source):
    """All of Unicode, assigned or not, the neighbours of the surrogates included."""
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    lines = []
    for start in range(0, len(points), 64):
        if points[start] < 0x33500 or points[start] >= 0xE0000 and points[start] < 0xE0400:
            lines.append("".join(map(chr, points[start:start + 64])).encode())
    for _ in range(500):
        lines.append("".join(chr(source.choice(points)) for _ in range(12)).encode())
    lines += [f"a{chr(c)}b {chr(c)}'s {chr(c)}1".encode()
              for c in (0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1FFFF, 0x10FFFF)]
    return lines


def mixed_lines(source, count):
    pools = [(0x20, 0x7F), (0x20, 0x7F), (0, 0x300), (0x300, 0x370), (0x370, 0x600), (0x600, 0x800),
             (0x900, 0xE00), (0xE00, 0x1200), (0x1E00, 0x2100), (0x2000, 0x2100), (0x2100, 0x3200),
             (0xAC00, 0xD7A4), (0xF900, 0xFB50), (0xFE00, 0x10000), (0x1F300, 0x1FB00), (0x10000, 0x12000),
             (0x1D000, 0x1D800), (0x2F800, 0x2FA20), (0x10D40, 0x10D90), (0x1CC00, 0x1CEB4)]
    lines = []
    for _ in range(count):
        text = ""
        for _ in range(source.randrange(1, 24)):
            kind = source.random()
            if kind < 0.5:
                first, last = source.choice(pools)
                text += "".join(chr(source.randrange(first, last)) for _ in range(source.randrange(1, 5)))
            elif kind < 0.7:
                text += source.choice(SPACES) * source.randrange(1, 4)
            elif kind < 0.85:
                text += source.choice(ENDINGS + SPECIALS)
            else:
                text += source.choice(["word", "Hello", "the ", "don", "x"]) + str(source.randrange(10 ** 6))
        lines.append(text.encode())
    return lines


def byte_lines(source, others):
    lines = [bytes(source.randrange(256) for _ in range(source.randrange(60))) for _ in range(3000)]
    for _ in range(1000):
        line = bytearray(source.choice(others)[:200])
        for _ in range(3 if line else 0):
            line[source.randrange(len(line))] = source.randrange(256)
        lines.append(bytes(line))
    return lines


def make_lines(root):
    source = random.Random(20240607)
    lines = source_lines(root)
    source.shuffle(lines)
    lines = lines[:12000] + task_lines(source) + code_point_lines(source) + mixed_lines(source, 6000)
    lines += byte_lines(source, lines)
    return lines + [b"", b" ", b"a" * 3000, b" " * 3000, "\u00e9".encode() * 2000, b"\n" * 2000, b"ab" * 1500]


def answer(tokenizer, line):
    ids = tokenizer.encode(line.decode("utf-8", "replace")).ids
    text = tokenizer.decode(ids, skip_special_tokens=False).encode()
    return struct.pack(f"<I{len(ids)}iI", len(ids), *ids, len(text)) + text


def main():
    root, out = map(pathlib.Path, sys.argv[1:3])
    lines = make_lines(root)
    (out / "lines").write_bytes(b"".join(struct.pack("<I", len(line)) + line for line in lines))
    for i, name in enumerate(sys.argv[3:]):
        text = (lzma.open(name) if name.endswith(".xz") else open(name, "rb")).read()
        (out / f"{i}.json").write_bytes(text)
        tokenizer = Tokenizer.from_str(json.dumps(json.loads(text)))
        (out / f"{i}.answers").write_bytes(b"".join(answer(tokenizer, line) for line in lines))


if __name__ == "__main__":
    main()
