#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models and golden values of the tokenizer.model tests.

    python make_sentencepiece_goldens.py

needs the packages sentencepiece and transformers<5 (the last with LlamaTokenizer on sentencepiece:
`pip install --target DIR --no-deps transformers==4.57.3 tokenizers==0.22.1 huggingface_hub==0.36.0`
and DIR in PYTHONPATH). It writes beside itself under tokenizer/:
  sp_bpe.model, sp_unigram.model   trained here
  sp_goldens.json                  per directory of files: ids and decoded texts
  gguf_llama.json                  the BPE model as a GGUF file holds it, with the ids of the
                                   tokenizer.json that Transformers makes of it
and expects corpus.json, which make_tokenizer_goldens.py writes.
"""
import io
import json
import pathlib
import random
import shutil
import tempfile

import sentencepiece
import transformers
from transformers import LlamaTokenizer, LlamaTokenizerFast
from sentencepiece import sentencepiece_model_pb2 as proto

import make_tokenizer_goldens as base

OUT = base.OUT
RULES = "41 30A\t61\nC5\t61 61\nFB01\t66 69\n2160\t49\n"  # "A" + ring -> a, "Å" -> aa, ligature, numeral


def training_text():
    """Enough different words for a unigram model to choose from."""
    source = random.Random(base.SEED + 2)
    syllables = "ka to re mi lo sun ter ing ed pre con ally ness un".split()
    made = ["".join(source.choice(syllables) for _ in range(source.randrange(1, 5))) for _ in range(300)]
    lines = [line.strip() for line in base.training_text() if line.strip()]
    return lines + [" ".join(source.choice(made) for _ in range(9)) for _ in range(400)]


def train(name, **options):
    text = training_text()
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "rules.tsv"
        rules.write_text(RULES)
        if options.pop("rules", False):
            options["normalization_rule_tsv"] = str(rules)
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=model, num_threads=1, minloglevel=2,
            character_coverage=0.999, **options)
    (OUT / f"{name}.model").write_bytes(model.getvalue())


def make_models():
    train("sp_bpe", model_type="bpe", vocab_size=440, byte_fallback=True, split_digits=True,
          normalization_rule_name="identity", remove_extra_whitespaces=False,
          user_defined_symbols=["<|user|>", "=>"], allow_whitespace_only_pieces=True)
    train("sp_unigram", model_type="unigram", vocab_size=220, rules=True,
          control_symbols=["<ctl>"], user_defined_symbols=["[X]"])


def entry(content, **flags):
    return {**dict(content=content, lstrip=False, rstrip=False, normalized=False, single_word=False,
                   special=True), **flags}


def directories(size):
    """name -> (model, files beside it); `size`: pieces of the BPE model."""
    core = {"0": entry("<unk>"), "1": entry("<s>"), "2": entry("</s>")}
    stripping = {**core, str(size): entry("<mask>", lstrip=True, rstrip=True),
                 str(size + 1): entry("word", single_word=True, special=False),
                 str(size + 2): entry("<pad>", lstrip=True), str(size + 3): entry("<pad><", special=False)}
    config = "tokenizer_config.json"
    return {
        "bpe": ("sp_bpe", {}),
        "bpe legacy": ("sp_bpe", {config: {"legacy": True, "add_bos_token": True, "add_eos_token": True,
                                           "tokenizer_class": "LlamaTokenizer",
                                           "added_tokens_decoder": core}}),
        "bpe not legacy": ("sp_bpe", {config: {"legacy": False, "add_bos_token": True,
                                               "add_eos_token": False, "added_tokens_decoder": core}}),
        "bpe not legacy, no prefix": ("sp_bpe", {config: {
            "legacy": False, "add_prefix_space": False, "add_bos_token": False,
            "added_tokens_decoder": core}}),
        "bpe flags": ("sp_bpe", {config: {"legacy": True, "added_tokens_decoder": stripping,
                                          "pad_token": "<pad>",
                                          "additional_special_tokens": ["<mask>"]}}),
        "bpe flags, not legacy": ("sp_bpe", {config: {"legacy": False, "added_tokens_decoder": stripping,
                                                      "pad_token": "<pad>"}}),
        "bpe old files": ("sp_bpe", {
            config: {"add_eos_token": True},
            "added_tokens.json": {"<pad>": size, "word": size + 1},
            "special_tokens_map.json": {"bos_token": entry("<s>"), "eos_token": "</s>",
                                        "unk_token": "<unk>", "pad_token": "<pad>",
                                        "additional_special_tokens": ["<|begin|>", "<mask>"]}}),
        "unigram": ("sp_unigram", {}),
        "unigram not legacy": ("sp_unigram", {config: {"legacy": False, "add_eos_token": True,
                                                       "added_tokens_decoder": core}}),
    }


def answers(tokenizer, cases):
    out = []
    for case in cases:
        text = base.text_of(case)
        ids = tokenizer.encode(text)
        # The class asks for no spaces around added tokens, but decode() does not look at that.
        decode = dict(spaces_between_special_tokens=False, clean_up_tokenization_spaces=False)
        out.append({"ids": ids, "plain": tokenizer.encode(text, add_special_tokens=False),
                    "decoded": tokenizer.decode(ids, skip_special_tokens=False, **decode),
                    "skipped": tokenizer.decode(ids, skip_special_tokens=True, **decode)})
    return out


def check_plain(model, tokenizer, cases):
    """Without files beside it, a text without special tokens is the library's own business."""
    for case in cases:
        text = base.text_of(case)
        if not any(token in text for token in ("<s>", "</s>", "<unk>")):
            assert tokenizer.encode(text, add_special_tokens=False) == model.encode(text), text


def gguf_answers(cases):
    model = proto.ModelProto.FromString((OUT / "sp_bpe.model").read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(OUT / "sp_bpe.model", f"{folder}/tokenizer.model")
        fast = LlamaTokenizerFast.from_pretrained(folder, legacy=True, add_bos_token=False)
    return {"tokens": [piece.piece for piece in model.pieces],
            "scores": [piece.score for piece in model.pieces],
            "token_type": [piece.type for piece in model.pieces],
            "answers": base.answers(fast.backend_tokenizer, cases)}


def main():
    make_models()
    corpus = json.loads((OUT / "corpus.json").read_text())["cases"]
    short = base.feature_cases(corpus) + [{"text": t} for t in (
        "a <mask> b<mask>c \u3000<mask>\x1cd", "word sword word. <pad>word word<pad>", "<s> x</s> y", "<s>",
        "\u2581<s>", " <s>a", "A\u030a \u00c5 \ufb01 \u2160 [X]y <ctl>", "<|user|>  hi", "<pad><s><pad><",
        "<|begin|>a <|begin|>", "<unk> x", " ", "", "\u2581", "zz\u20ac\u20ac <0x0A>")]
    size = sentencepiece.SentencePieceProcessor(model_file=str(OUT / "sp_bpe.model")).get_piece_size()
    results = []
    for name, (model, files) in directories(size).items():
        cases = corpus + short if name in ("bpe", "unigram") else short
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(OUT / f"{model}.model", f"{folder}/tokenizer.model")
            for file, content in files.items():
                (pathlib.Path(folder) / file).write_text(json.dumps(content))
            tokenizer = LlamaTokenizer.from_pretrained(folder)
            if not files:
                check_plain(sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model"),
                            tokenizer, cases)
            results.append({"name": name, "model": model, "files": files, "size": len(tokenizer),
                            "whole_corpus": cases is not short, "answers": answers(tokenizer, cases)})
    header = base.header()
    header["generator"] = pathlib.Path(__file__).name
    header["versions"].update(transformers=transformers.__version__,
                              sentencepiece=sentencepiece.__version__)
    base.write("sp_goldens.json", {**header, "cases": short, "directories": results})
    base.write("gguf_llama.json", {**header, **gguf_answers(corpus)})


if __name__ == "__main__":
    main()
