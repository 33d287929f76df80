#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden values of the tokenizer tests, from the `tokenizers` library.

    python make_tokenizer_goldens.py [SMOLLM2_DIRECTORY]

writes, beside itself under tokenizer/:
  corpus.json       nasty texts: {"text": …}, {"hex": …} for invalid UTF-8, {"repeat": [text, n]}
  byte_level.json   a small byte-level BPE tokenizer, trained here
  features.json     a small BPE model and, per feature, what a tokenizer.json changes, with ids
  stories260K.json, byte_level_ids.json, smollm2.json   ids and decoded texts of the corpus
  smollm2_gguf.json      the same for SmolLM2's GGUF file
  gguf_byte_level.json   the byte-level tokenizer under each name of "tokenizer.ggml.pre", with ids
"""
import copy
import json
import pathlib
import random
import sys
import tempfile

import tokenizers
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

SEED = 20240607
HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "tokenizer"
STORIES = HERE.parents[1] / "resources/demo/stories260K/tokenizer.json"
LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                  r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K_PATTERN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
                 r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
                 r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
                 r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}|"
                  r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
DEEPSEEK_PATTERN = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?"
                    r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def fixed_texts():
    return [
        "", " ", "  ", "\n", "\t", "\r\n", " \n ", "\n\n\n", "a", " a", "a ", "  two  spaces  ",
        "Once upon a time, there was a little girl named Lily.",
        "tab\tseparated\tvalues\n\tindented\n        eight spaces", "trailing   \n   leading",
        "caf\u00e9 cafe\u0301 na\u00efve nai\u0308ve \u1e69 s\u0323\u0307 s\u0307\u0323 \u212b",
        "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab\u1100\u116e\u11a8 \uac00\u11a8 \uac01",
        "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\u4e2d\u6587\uff0c\u6807\u70b9\uff01",
        "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u05e9\u05dc\u05d5\u05dd "
        "\u202eabc\u202c",
        "\U0001f44d\U0001f3fd \U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \u2764\ufe0f "
        "\U0001f1e9\U0001f1ea \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "I'm you're he'll they've we'd it's don't I'M YOU'RE HE'LL THEY'VE WE'D IT'S '\u017f \u2019s",
        "0 12 345 6789 01234567890 3.14159 1,000,000 1e-5 0xFF \u0661\u0662\u0663 \u2155 \u00b2 \u216b",
        "\x00\x01\x02\x07\x08\x0b\x0c\x0e\x1b\x1f\x7f\u0080\u0085\u009f\u00ad\u200b\u200e\ufeff",
        "a\u00a0b\u1680c\u2003d\u2028e\u2029f\u202fg\u205fh\u3000i\u180ej", " \u3000 \u00a0 \u2003x",
        "def f(x):\n    if x > 0:\n        return x ** 2  # square\n\treturn -x\n",
        "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; } // \u00b5s\r\n#include <vector>\r\n",
        "<s>text</s> <unk> <s> </s><s><|begin|>hi<|end|> <0x0A> <0x41>", "x<|end|>", "<|begin|",
        "  <pad>  left and right <mask>  both  <mask> ", "word words sword word. word", "\u2581 \u2581a",
        "a\u0300\u0301\u0302\u0303\u0304" * 8, "\u0958\u0929\u09dc \u0e33 \u0fb3 \u1e9b\u0323 \ufb01",
        "\u0130\u0131I\u00df\u1e9e\u03a3\u03c3\u03c2", "\U00011241\U000105c0\U0001ccf0\ua7cb\u1c89 new",
        "\U000e0001\U0010ffff\ufffe\uffff\ue000", "https://example.org/a_b-c?d=e&f=%20#g user@host.tld",
        "!!!???...---***~~~///\\\\\\(((((([[[[[{{{{", "'" * 40, "A" * 70 + "b" * 70, "\n" * 100,
    ]


def random_text(source, pools):
    text = ""
    for _ in range(source.randrange(1, 16)):
        first, last = source.choice(pools)
        text += "".join(chr(source.randrange(first, last)) for _ in range(source.randrange(1, 4)))
        text += source.choice(["", "", " ", "  ", "\n", "'s", "12", " the"])
    return text


def make_corpus():
    source = random.Random(SEED)
    pools = [(0x20, 0x7F), (0x20, 0x7F), (0, 0x300), (0x300, 0x370), (0x370, 0x600), (0x600, 0x800),
             (0x900, 0xE00), (0xE00, 0x1200), (0x1E00, 0x2400), (0x3000, 0x3200), (0x4E00, 0x9FFF),
             (0xAC00, 0xD7A4), (0xF900, 0xFB50), (0xFE00, 0x10000), (0x1F300, 0x1FB00),
             (0x10D40, 0x10D90), (0x11000, 0x11800), (0x1CC00, 0x1CEB4), (0x1D000, 0x1D800)]
    cases = [{"text": text} for text in fixed_texts()]
    cases += [{"text": random_text(source, pools)} for _ in range(120)]
    cases += [{"hex": bytes(source.randrange(256) for _ in range(24)).hex()} for _ in range(20)]
    for piece in ("ff", "c3", "e2 82", "f0 9f 98", "f0 9f 98 41", "ed a0 80", "c0 80", "f4 90 80 80"):
        cases.append({"hex": (b"a" + bytes.fromhex(piece) + b"b").hex()})
    cases += [{"repeat": ["a", 5000]}, {"repeat": [" ", 5000]}, {"repeat": ["\u00e9", 1000]},
              {"repeat": ["ab ", 700]}]
    return cases


def text_of(case):
    if "text" in case:
        return case["text"]
    if "repeat" in case:
        return case["repeat"][0] * case["repeat"][1]
    return bytes.fromhex(case["hex"]).decode("utf-8", "replace")


def answers(tokenizer, cases):
    out = []
    for case in cases:
        text = text_of(case)
        ids = tokenizer.encode(text).ids
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        entry = {"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        if plain != ids:
            entry["plain"] = plain
        skipped = tokenizer.decode(ids, skip_special_tokens=True)
        if skipped != entry["decoded"]:
            entry["skipped"] = skipped
        out.append(entry)
    return out


def header():
    return {"generator": "make_tokenizer_goldens.py", "seed": SEED,
            "versions": {"tokenizers": tokenizers.__version__,
                         "python": sys.version.split()[0]}}


def write(name, content):
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    (OUT / name).write_text(text.replace("},{", "},\n{") + "\n")


def training_text():
    """Sentences that make merges across spaces, digits, punctuation and accents worth learning."""
    source = random.Random(SEED + 1)
    words = ("the cat sat on a mat and then he said don't you're we'll it's word words 12 345 2024 "
             "hello, world! (yes) x = y + 1; return caf\u00e9 na\u00efve \u65e5\u672c \ud55c\uad6d "
             "stop. end? [a] {b} __init__ 3.14 \u2581 \u00fcber").split(" ")
    return [" ".join(source.choice(words) for _ in range(12)) + source.choice(["\n", "", "  "])
            for _ in range(400)]


def added(content, ident, **options):
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    return {"id": ident, "content": content, **flags, **options}


def make_byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(training_text(), trainer)
    document = json.loads(tokenizer.to_str())
    size = len(document["model"]["vocab"])
    document["added_tokens"] = [
        added("<|begin|>", size, special=True), added("<|end|>", size + 1, special=True),
        added("<pad>", size + 2, lstrip=True), added("<mask>", size + 3, lstrip=True, rstrip=True),
        added("word", document["model"]["vocab"]["word"], single_word=True, normalized=True)]
    begin = {"id": "<|begin|>", "ids": [size], "tokens": ["<|begin|>"]}
    single = [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}},
              {"Sequence": {"id": "A", "type_id": 0}}]
    pair = single + [{"Sequence": {"id": "B", "type_id": 1}}]
    document["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing", "single": single, "pair": pair,
         "special_tokens": {"<|begin|>": begin}}]}
    document["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                           "use_regex": True}
    return document


def make_base():
    """A model without pre-tokenizer: its merges cross every boundary that a feature may draw."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"],
                                  initial_alphabet=list(map(chr, range(32, 127))))
    tokenizer.train_from_iterator(training_text(), trainer)
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = []
    return document


def sequence(kind, parts):
    return {"type": "Sequence", kind: parts}


def pre_tokenizer_features():
    metaspace = {"type": "Metaspace", "replacement": "\u2581"}
    byte_level = {"type": "ByteLevel", "trim_offsets": True}
    features = {}
    for pattern in ({"String": " "}, {"String": "wo"}, {"Regex": r"\s+|\d"}, {"Regex": r"\w+|[^\w\s]+"}):
        for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
            for invert in (False, True):
                kind, text = next(iter(pattern.items()))
                features[f"Split {kind} {text} {behavior} {invert}"] = {
                    "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    for name, text in (("llama3", LLAMA3_PATTERN), ("o200k", O200K_PATTERN),
                       ("cl100k", CL100K_PATTERN), ("deepseek", DEEPSEEK_PATTERN),
                       ("cjk", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), ("lines", r"^[^\n]+$"),
                       ("look", r"(?<=\p{L})(?=\d)|(?<!o)l"),
                       ("interval", r"\p{P}{2,}|\p{Lu}{,2}[a-c]|o{1,2}?")):
        features[f"Split pattern {name}"] = {"type": "Split", "pattern": {"Regex": text},
                                             "behavior": "Isolated", "invert": False}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            features[f"Metaspace {scheme} {split}"] = {**metaspace, "prepend_scheme": scheme,
                                                       "split": split}
    for prefix in (True, False):
        for use_regex in (True, False):
            features[f"ByteLevel {prefix} {use_regex}"] = {**byte_level, "add_prefix_space": prefix,
                                                           "use_regex": use_regex}
    features["Digits individual"] = {"type": "Digits", "individual_digits": True}
    features["Digits"] = {"type": "Digits", "individual_digits": False}
    features["Punctuation"] = {"type": "Punctuation", "behavior": "Isolated"}
    features["Punctuation contiguous"] = {"type": "Punctuation", "behavior": "Contiguous"}
    features["Whitespace"] = {"type": "Whitespace"}
    features["WhitespaceSplit"] = {"type": "WhitespaceSplit"}
    features["CharDelimiterSplit"] = {"type": "CharDelimiterSplit", "delimiter": "o"}
    features["Sequence"] = sequence("pretokenizers", [
        {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Isolated"},
        {**metaspace, "prepend_scheme": "first", "split": True}])
    return {name: {"pre_tokenizer": value} for name, value in features.items()}


def normalizer_features():
    simple = {name: {"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "ByteLevel")}
    simple["Prepend"] = {"type": "Prepend", "prepend": "\u2581"}
    simple["Replace string"] = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    simple["Replace regex"] = {"type": "Replace", "pattern": {"Regex": r"\s{2,}|[0-9]+"}, "content": "#"}
    simple["Replace empty matches"] = {"type": "Replace", "pattern": {"Regex": "o*"}, "content": "-"}
    for left, right in ((True, True), (True, False), (False, True)):
        simple[f"Strip {left} {right}"] = {"type": "Strip", "strip_left": left, "strip_right": right}
    simple["Sequence"] = sequence("normalizers", [simple["NFKC"], simple["Lowercase"], simple["Prepend"],
                                                  simple["Replace string"]])
    return {f"normalizer {name}": {"normalizer": value} for name, value in simple.items()}


def model_features(base):
    vocab = dict(base["model"]["vocab"])
    size = len(vocab)
    byte_vocab = {**vocab, **{f"<0x{byte:02X}>": size + byte for byte in range(256)}}
    part_vocab = {**vocab, **{f"<0x{byte:02X}>": size + i for i, byte in enumerate(range(0xC0, 256))}}
    llama = sequence("normalizers", [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}])
    whole = sequence("pretokenizers", [{"type": "WhitespaceSplit"}])
    return {
        "model fuse_unk": {"model": {"fuse_unk": True}},
        "model no unk": {"model": {"unk_token": None}},
        "model byte_fallback": {"normalizer": llama,
                                "model": {"byte_fallback": True, "fuse_unk": True, "vocab": byte_vocab}},
        "model some bytes": {"model": {"byte_fallback": True, "vocab": part_vocab}},
        "model ignore_merges": {"pre_tokenizer": whole,
                                "model": {"ignore_merges": True,
                                          "vocab": {**vocab, "mat on a": size, "sword": size + 1}}},
        "model merges as strings": {"model": {"merges": [
            " ".join(pair) for pair in base["model"]["merges"] if not any(" " in p for p in pair)]}},
    }


def added_features(base):
    size = len(base["model"]["vocab"])
    lower = {"type": "Lowercase"}
    tokens = {
        "plain": [added("<s>", size, special=True), added("</s>", size + 1, special=True)],
        "nested": [added("<s>", size), added("<s><", size + 1), added("s>", size + 2)],
        "lstrip": [added("<mask>", size, lstrip=True), added("<s>", size + 1, lstrip=True, special=True)],
        "rstrip": [added("<mask>", size, rstrip=True), added(" both", size + 1)],
        "single_word": [added("word", size, single_word=True), added("sword", size + 1)],
        "normalized": [added("HELLO", size, normalized=True), added("Text", size + 1),
                       added("Word", size + 2, normalized=True, single_word=True, special=True)],
    }
    features = {f"added {name}": {"added_tokens": value} for name, value in tokens.items()}
    features["added lowercase"] = {"added_tokens": tokens["normalized"], "normalizer": lower}
    prepend = {"type": "Prepend", "prepend": "\u2581"}
    features["added prepend"] = {"added_tokens": tokens["plain"] + [added("word", size + 2, normalized=True)],
                                 "normalizer": prepend}
    features["added metaspace first"] = {
        "added_tokens": tokens["lstrip"],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first",
                          "split": False}}
    return features


def flag_features(base):
    """Every combination of an added token's flags, behind a normalizer that makes them matter."""
    size = len(base["model"]["vocab"])
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    tokens = [added(f"<K{bits:02}>", size + bits, **{name: bool(bits >> i & 1) for i, name in enumerate(names)})
              for bits in range(32)]
    texts = []
    for token in tokens:
        content = token["content"]
        texts.append(f"a {content} b{content}c \u3000{content.lower()}\n{content}. x{content} {content}y")
    return {"added flags": {"cases": [{"text": text} for text in texts],
                            "change": {"added_tokens": tokens, "normalizer": {"type": "Lowercase"}}},
            "added flags without normalizer": {"cases": [{"text": text} for text in texts],
                                               "change": {"added_tokens": tokens}}}


def merge_features():
    """Vocabulary a0 b1 c2 bc3 abc4, one merge, as a pair and as a string."""
    model = {"vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "abc": 4}, "unk_token": None}
    cases = [{"text": "abc"}, {"text": "abcabc"}, {"text": "cab bca"}]
    return {f"merges {kind}{', ignored for whole words' if ignore else ''}": {
        "cases": cases, "change": {"model": {**model, "merges": merges, "ignore_merges": ignore}}}
        for kind, merges in (("as pairs", [["b", "c"]]), ("as strings", ["b c"])) for ignore in (False, True)}


def post_features(base):
    size = len(base["model"]["vocab"])
    tokens = [added("<s>", size, special=True), added("</s>", size + 1)]

    def template(*pieces):
        kinds = [{"Sequence" if piece in "AB" else "SpecialToken": {"id": piece, "type_id": 0}}
                 for piece in pieces]
        return {"type": "TemplateProcessing", "single": kinds, "pair": kinds + [{"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {name: {"id": name, "ids": ids, "tokens": [name] * len(ids)} for name, ids in
                                   (("<s>", [size]), ("</s>", [size + 1, size + 1]))}}

    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    processors = {"ByteLevel": byte_level, "Template": template("<s>", "A", "</s>"),
                  "Template behind": template("A", "</s>", "<s>"),
                  "Sequence": sequence("processors", [byte_level, template("<s>", "A")]),
                  "Sequence of templates": sequence("processors", [template("A", "</s>"), template("<s>", "A")])}
    return {f"post-processor {name}": {"added_tokens": tokens, "post_processor": value}
            for name, value in processors.items()}


def decoder_features():
    space = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    decoders = {
        "ByteLevel": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                      "use_regex": True},
        "Fuse": {"type": "Fuse"}, "ByteFallback": {"type": "ByteFallback"}, "Replace": space,
        "Replace regex": {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "*"},
        "Strip start": sequence("decoders", [{"type": "Fuse"},
                                       {"type": "Strip", "content": " ", "start": 2, "stop": 0}]),
        "Strip stop": sequence("decoders", [{"type": "Fuse"},
                                            {"type": "Strip", "content": " ", "start": 0, "stop": 1}]),
        "Metaspace": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "Metaspace never": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never",
                            "split": True},
        "Sequence": sequence("decoders", [space, {"type": "ByteFallback"}, {"type": "Fuse"},
                                          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]),
    }
    return {f"decoder {name}": {"decoder": value} for name, value in decoders.items()}


def all_features(base):
    return {**pre_tokenizer_features(), **normalizer_features(), **model_features(base),
            **added_features(base), **post_features(base), **decoder_features()}


def gguf_pre_tokenizers():
    """Name in a GGUF file -> pre-tokenizer, normalizer, ignore_merges of the models that it names."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}

    def splits(*patterns):
        parts = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
                 for pattern in patterns]
        return sequence("pretokenizers", [*parts, {**byte_level, "use_regex": False}])

    gpt2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)")
    tekken = O200K_PATTERN.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
    qwen2 = LLAMA3_PATTERN.replace("{1,3}", "")
    return {
        "llama-bpe": (splits(LLAMA3_PATTERN), None, True), "dbrx": (splits(LLAMA3_PATTERN), None, False),
        "qwen2": (splits(qwen2), {"type": "NFC"}, False), "tekken": (splits(tekken), None, True),
        "gpt-4o": (splits(O200K_PATTERN), None, False), "gpt-2": (byte_level, None, False),
        "smollm": (sequence("pretokenizers", [digits, byte_level]), None, False),
        "default": (splits(r"[\p{P}\$\+<=>\^~\|]+", gpt2, r"\p{N}+", "[0-9][0-9][0-9]"), None, False)}


def make_gguf_goldens(byte_level, cases):
    """The special tokens of the tokenizer, without its others: a GGUF file has no flags for them."""
    out = []
    for name, (pre_tokenizer, normalizer, ignore_merges) in gguf_pre_tokenizers().items():
        document = combine(byte_level, {"pre_tokenizer": pre_tokenizer, "normalizer": normalizer,
                                        "added_tokens": byte_level["added_tokens"][:2],
                                        "model": {"ignore_merges": ignore_merges}})
        out.append({"pre": name, "answers": answers(load(document), cases)})
    return out


def combine(base, change):
    document = copy.deepcopy(base)
    for key, value in change.items():
        if key == "model":
            document["model"].update(value)
        else:
            document[key] = value
    return document


def load(document):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        return Tokenizer.from_file(file.name)


def feature_cases(corpus):
    """Short texts: every feature is asked all of them."""
    extra = ["the cat sat on a mat", "the word words sword. 12 345 don't", "  HELLO Text Word word\n",
             "hello, world!  (yes)", "\u00fcber na\u00efve \u65e5\u672c \u2581 x", "<s>the <mask> both</s>",
             "zz\u00b5\u00b6 \u4e00\u0416", "one\ntwo\n\nthree\n", "ab12cd345 ell"]
    short = [case for case in corpus if "text" in case and 0 < len(case["text"]) < 60]
    return [{"text": text} for text in extra] + short[:18]


def main():
    OUT.mkdir(exist_ok=True)
    corpus = make_corpus()
    write("corpus.json", {**header(), "cases": corpus})
    byte_level = make_byte_level()
    write("byte_level.json", byte_level)
    write("byte_level_ids.json", {**header(), "answers": answers(load(byte_level), corpus)})
    write("stories260K.json", {**header(), "answers": answers(Tokenizer.from_file(str(STORIES)), corpus)})
    base = make_base()
    cases = feature_cases(corpus)
    features = []
    for name, change in all_features(base).items():
        tokenizer = load(combine(base, change))
        features.append({"name": name, "change": change, "answers": answers(tokenizer, cases)})
    for name, feature in {**flag_features(base), **merge_features()}.items():
        tokenizer = load(combine(base, feature["change"]))
        features.append({"name": name, **feature, "answers": answers(tokenizer, feature["cases"])})
    write("features.json", {**header(), "base": base, "cases": cases, "features": features})
    write("gguf_byte_level.json", {**header(), "cases": cases,
                                   "names": make_gguf_goldens(byte_level, cases)})
    if len(sys.argv) > 1:
        path = pathlib.Path(sys.argv[1]) / "tokenizer.json"
        write("smollm2.json", {**header(), "answers": answers(Tokenizer.from_file(str(path)), corpus)})
        # The directory was written from a GGUF file by Transformers, which left out that the model's
        # pre-tokenizer cuts at every digit.
        published = combine(json.loads(path.read_text()),
                            {"pre_tokenizer": gguf_pre_tokenizers()["smollm"][0]})
        write("smollm2_gguf.json", {**header(), "answers": answers(load(published), corpus)})


if __name__ == "__main__":
    main()
