# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden logits and greedy tokens of Hugging Face Transformers (float32, CPU), and the tiny checkpoints they belong to.

    HF_HUB_OFFLINE=1 python tests/golden/make_model_goldens.py            all but SmolLM2
    MLA_SMOLLM2_DIR=DIR ... make_model_goldens.py                         SmolLM2-135M-Instruct as well

Writes, under data/:
  models.json            versions, seed, tolerance and per model: checkpoint, logits file, spread (standard deviation of all its logits)
                         greedy [{prompt, prompt_ids, ids, smallest_margin}], 64 new ids each, prompt only for the demo checkpoint;
                         whole_ids beside ids where reading the whole text again for every token gives others (dynamic rope)
  model_NAME.safetensors input_ids I64 [B,T], logits F32 [B,T,vocab]; for dynamic rope stepped F32 [B,T,vocab], token by token
  tiny/NAME/             checkpoints written by Transformers from seeded weights:
    biased               attention_bias and mlp_bias, large biases, GQA 4/2, tied, float32
    llama3               llama3 rope scaling, original length 64, logits to position 159, bfloat16
    linear               linear rope scaling, config.json of the older generation (rope_theta, rope_scaling, torch_dtype), bfloat16
    wide-heads           head_dim 16 where hidden/heads is 8, untied, float16
    sharded              weights in several files with an index, untied, bfloat16
    qwen2                q, k, v biases, those of k in the tens, rope_theta 1e6, untied, float32
    qwen2-window         use_sliding_window 8 from layer 2 of 4 on, config.json of the older generation without layer_types, bfloat16
    qwen3                head_dim 16 where hidden/heads is 8, k_norm a ramp 0.1 ... 10, tied, bfloat16
    qwen3-window         attention_bias, layer_types sliding, full, sliding with window 5, untied, float16
    mistral              sliding_window 7 in every layer, head_dim 16, config.json of the older generation, bfloat16
    mistral-full         sliding_window null, bfloat16
    yarn                 factor 4, original length 32, logits to position 159, attention factor implied, bfloat16
    yarn-given           qwen2 with attention_factor, beta_fast, beta_slow, truncate false, older generation ("type"), bfloat16
    yarn-mscale          mscale and mscale_all_dim, original length from max_position_embeddings, bfloat16
    dynamic              factor 4, max_position_embeddings 40, logits to position 95, bfloat16
    dynamic-older        mistral without a window, factor 3, older generation ("type"), bfloat16
  rope.json              rows [{config, head_dim, length (dynamic alone), inv_freq, attention_factor}] of modeling_rope_utils, float32
  smollm2.json           greedy as above; logits {ids, spread, positions, vocabulary, values [positions][vocabulary], argmax [T]}
"""
import json
import os
import platform
import re
import shutil

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
DEMO = os.path.join(HERE, "..", "..", "resources", "demo", "stories260K")
SEED = 1234
BASE = dict(vocab_size=64, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2)
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
OLDER = "4.44.0"  # the last version before rope_type, layer_types and dtype
SLIDING, FULL = "sliding_attention", "full_attention"


def yarn(**more):
    return {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0} | more


# name: (model_type, settings, dtype, text length, how it is saved). The place in this table seeds the weights: append only.
TINY = {
    "biased": ("llama", dict(attention_bias=True, mlp_bias=True, rope_parameters=DEFAULT_ROPE), torch.float32, 32, {}),
    "linear": ("llama", dict(rope_parameters={"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}), torch.bfloat16, 48, {"older": True}),
    "llama3": ("llama", dict(num_attention_heads=2, num_key_value_heads=1,
                             rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}), torch.bfloat16, 160, {}),
    "sharded": ("llama", dict(tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE), torch.bfloat16, 32, {"max_shard_size": "16KB"}),
    "wide-heads": ("llama", dict(head_dim=16, tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE), torch.float16, 32, {}),
    "qwen2": ("qwen2", dict(tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 1e6}), torch.float32, 32, {}),
    "qwen2-window": ("qwen2", dict(tie_word_embeddings=False, num_hidden_layers=4, use_sliding_window=True, sliding_window=8, max_window_layers=2,
                                   rope_parameters=DEFAULT_ROPE), torch.bfloat16, 48, {"older": True}),
    "qwen3": ("qwen3", dict(head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 1e6}), torch.bfloat16, 32, {}),
    "qwen3-window": ("qwen3", dict(num_hidden_layers=3, head_dim=8, attention_bias=True, use_sliding_window=True, sliding_window=5,
                                   layer_types=[SLIDING, FULL, SLIDING], tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE),
                     torch.float16, 40, {}),
    "mistral": ("mistral", dict(tie_word_embeddings=False, head_dim=16, sliding_window=7, rope_parameters=DEFAULT_ROPE), torch.bfloat16, 48,
                {"older": True}),
    "mistral-full": ("mistral", dict(sliding_window=None, rope_parameters=DEFAULT_ROPE), torch.bfloat16, 32, {}),
    "yarn": ("llama", dict(tie_word_embeddings=False, max_position_embeddings=128, rope_parameters=yarn(original_max_position_embeddings=32)),
             torch.bfloat16, 160, {}),
    "yarn-given": ("qwen2", dict(tie_word_embeddings=False, head_dim=16, max_position_embeddings=128,
                                 rope_parameters=yarn(original_max_position_embeddings=32, attention_factor=1.3, beta_fast=16.0,
                                                      beta_slow=2.0, truncate=False)), torch.bfloat16, 96, {"older": True}),
    "yarn-mscale": ("llama", dict(max_position_embeddings=48, rope_parameters=yarn(mscale=1.5, mscale_all_dim=0.5)), torch.bfloat16, 96, {}),
    "dynamic": ("llama", dict(tie_word_embeddings=False, max_position_embeddings=40,
                              rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}), torch.bfloat16, 96, {}),
    "dynamic-older": ("mistral", dict(tie_word_embeddings=False, head_dim=16, max_position_embeddings=32, sliding_window=None,
                                      rope_parameters={"rope_type": "dynamic", "rope_theta": 5000.0, "factor": 3.0}), torch.bfloat16, 64,
                      {"older": True}),
}


def noiseScale(name, key):
    """Weights large enough that attention is sharp and positions matter; biases several times larger than W x."""
    if key.endswith("k_proj.bias") and name == "qwen2":
        return 30.0
    if key.endswith(".bias"):
        return 4.0 if "self_attn" in key else 1.0
    return 1.5 if "q_proj" in key or "k_proj" in key else 1.0


def tinyModel(name, modelType, settings, dtype):
    """Seeded weights, rounded to dtype."""
    generator = torch.Generator().manual_seed(SEED + list(TINY).index(name))
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(modelType, **(BASE | settings)), dtype=torch.float32)
    with torch.no_grad():
        for key, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator) * noiseScale(name, key)
            if key.endswith(".bias"):
                p.copy_(noise)
            elif key.endswith("k_norm.weight"):
                p.copy_(torch.logspace(-1, 1, len(p)))
            elif p.dim() == 1:
                p.copy_(1 + 0.3 * noise)
            else:
                p.copy_(noise / p.shape[1] ** 0.5)
            p.copy_(p.to(dtype))
    return model.eval()


def olderConfig(directory):
    """Rewrites config.json as the previous generation of Transformers wrote it."""
    path = os.path.join(directory, "config.json")
    with open(path) as f:
        config = json.load(f)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    scaling = {"type": rope.pop("rope_type")} | rope
    config["rope_scaling"] = None if scaling["type"] == "default" else scaling
    config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = OLDER
    with open(path, "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")


@torch.no_grad()
def logitsOf(model, ids):
    return model(ids, use_cache=False).logits.float()


@torch.no_grad()
def steppedLogits(model, ids):
    """Token by token through the cache."""
    cache, steps = None, []
    for t in range(ids.shape[1]):
        out = model(ids[:, t:t + 1], past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        steps.append(out.logits.float())
    return torch.cat(steps, 1)


def load(directory):
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


def writeLogits(name, ids, logits, **more):
    path = os.path.join(DATA, f"model_{name}.safetensors")
    save_file({"input_ids": ids, "logits": logits.contiguous()} | more, path)
    os.chmod(path, 0o644)
    return {"logits": f"model_{name}.safetensors", "spread": float(logits.double().std())}


def isDynamic(model):
    return model.config.rope_parameters["rope_type"] == "dynamic"


def tellingPrompt(directory, length):
    """A prompt whose continuation neither repeats itself nor passes a near-tie, if one of a few does; else the one furthest from a tie."""
    generator, found = torch.Generator().manual_seed(SEED + length), []
    for _ in range(6):
        prompt = torch.randint(3, BASE["vocab_size"], (1, length), generator=generator)
        # Afresh: dynamic rope remembers the longest text that it has seen.
        row = {"prompt_ids": prompt[0].tolist()} | continuation(load(directory), prompt)
        found.append((row["smallest_margin"], prompt, row))
        if row["smallest_margin"] > 2e-3 and len(set(row["ids"])) >= 12:
            return prompt, row
    return max(found, key=lambda item: item[0])[1:]


def tinyGreedy(directory):
    """From a prompt shorter than any window or original length, and from one longer than most."""
    result = []
    for length in (4, 30):
        prompt, row = tellingPrompt(directory, length)
        model = load(directory)
        whole = continuation(model, prompt, use_cache=False)["ids"]
        if isDynamic(model):
            row["whole_ids"] = whole
        else:
            assert whole == row["ids"], f"{directory}: the cache changes the tokens"
        result.append(row)
    return result


def writeTiny(name):
    modelType, settings, dtype, length, saving = TINY[name]
    directory = os.path.join(DATA, "tiny", name)
    shutil.rmtree(directory, ignore_errors=True)
    model = tinyModel(name, modelType, settings, dtype)
    ids = torch.randint(3, BASE["vocab_size"], (1 if length > 64 else 2, length), generator=torch.Generator().manual_seed(SEED))
    expected = logitsOf(model, ids)  # before the cast, which would round the rope frequencies too
    older = saving.get("older", False)
    model.to(dtype).save_pretrained(directory, **{key: value for key, value in saving.items() if key != "older"})
    if older:
        olderConfig(directory)
    for file in os.listdir(directory):
        os.chmod(os.path.join(directory, file), 0o644)
    logits = logitsOf(load(directory), ids)
    assert (logits - expected).abs().max() < 1e-5, f"{name}: the saved checkpoint differs from the model"
    stepped = steppedLogits(load(directory), ids)
    more = {"stepped": stepped} if isDynamic(model) else {}
    assert more or (stepped - logits).abs().max() < 1e-3 * logits.std(), f"{name}: the cache changes the logits"
    return {"checkpoint": f"tiny/{name}"} | writeLogits(name, ids, logits, **more) | {"greedy": tinyGreedy(directory)}


@torch.no_grad()
def continuation(model, ids, count=64, **settings):
    """`count` greedy ids, end-of-text ones included, and the smallest gap between the two best logits on the way (a near-tie may flip
    elsewhere)."""
    model.generation_config.eos_token_id = None
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False, pad_token_id=0,
                         output_logits=True, return_dict_in_generate=True, **settings)
    best = torch.stack(out.logits)[:, 0].float().topk(2).values
    return {"ids": out.sequences[0, ids.shape[1]:].tolist(), "smallest_margin": float((best[:, 0] - best[:, 1]).min())}


def greedy(model, tokenizer, prompts, count=64):
    result = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        row = {"prompt": prompt, "prompt_ids": ids[0].tolist()} | continuation(model, ids, count)
        stops = model.config.eos_token_id
        assert not set(row["ids"]) & set(stops if isinstance(stops, list) else [stops]), f"{prompt!r} ends early"
        result.append(row)
    return result


C5 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
ROPES = [  # top-level keys, rope_scaling, lengths to ask for
    (dict(rope_theta=5e5, max_position_embeddings=131072), C5, [None]),
    (dict(rope_theta=5e5, max_position_embeddings=4096), {k: v for k, v in C5.items() if not k.startswith("original")}, [None]),
    (dict(rope_theta=1e4, original_max_position_embeddings=2048), C5, [None]),
    (dict(rope_theta=5e3), {"type": "linear", "factor": 4.0}, [None]),
    (dict(rope_theta=1e4, max_position_embeddings=2048), {"type": "dynamic", "factor": 2.0}, [None, 1, 2048, 2049, 8192]),
    (dict(rope_theta=1e6, max_position_embeddings=512), {"rope_type": "dynamic", "factor": 8.0}, [100, 700]),
    (dict(rope_theta=1e6, max_position_embeddings=32768), YARN, [None]),
    (dict(rope_theta=1e6, max_position_embeddings=32768), {"type": "yarn", "factor": 4.0}, [None]),
    (dict(rope_theta=1e6, max_position_embeddings=131072), YARN | {"factor": None}, [None]),
    (dict(rope_theta=1e6, original_max_position_embeddings=4096), YARN, [None]),
    (dict(rope_theta=1e4), YARN | {"factor": 0.5}, [None]),
    (dict(rope_theta=1e4), YARN | {"attention_factor": 1.25, "mscale": 2.0, "mscale_all_dim": 1.0}, [None]),
    (dict(rope_theta=1e4), YARN | {"mscale": 0.707, "mscale_all_dim": 1.0}, [None]),
    (dict(rope_theta=1e4), YARN | {"mscale": 0.707}, [None]),
    (dict(rope_theta=1e4), YARN | {"mscale": 0.707, "mscale_all_dim": 0}, [None]),
    (dict(rope_theta=1e4), YARN | {"beta_fast": 16, "beta_slow": 2.5, "truncate": False}, [None]),
    (dict(rope_theta=1e4), YARN | {"beta_fast": None, "beta_slow": 0}, [None]),
    (dict(rope_theta=150.0), YARN | {"original_max_position_embeddings": 2048}, [None]),
    (dict(rope_theta=1e4), YARN | {"original_max_position_embeddings": 4}, [None]),
]


def ropeGoldens():
    rows = []
    for top, scaling, lengths in ROPES:
        for headDim in (16, 64):
            for length in lengths:
                config = {"model_type": "llama", "head_dim": headDim} | top | {"rope_scaling": scaling}
                built = LlamaConfig(**json.loads(json.dumps(config)))
                kind = scaling.get("rope_type", scaling.get("type"))
                frequencies, factor = ROPE_INIT_FUNCTIONS[kind](built, seq_len=length)
                rows.append({"config": config, "head_dim": headDim, "length": length, "attention_factor": float(factor),
                             "inv_freq": [float(f"{f:.9g}") for f in frequencies.tolist()]})
    return {"script": "tests/golden/make_model_goldens.py", "versions": versions(), "rows": rows}


def demoGoldens():
    model, tokenizer = load(DEMO), AutoTokenizer.from_pretrained(DEMO)
    story = tokenizer("Once upon a time, there was a little girl named Lily. She loved to play outside in the park.").input_ids[:40]
    noise = torch.randint(3, model.config.vocab_size, (40,), generator=torch.Generator().manual_seed(SEED)).tolist()
    ids = torch.tensor([story + noise[:40 - len(story)], noise])
    facts = {"checkpoint": "stories260K"} | writeLogits("stories260K", ids, logitsOf(model, ids))
    prompts = ("Once upon a time", "Tom and his dog went to the", "One day, a big cat saw")
    return facts | {"greedy": greedy(model, tokenizer, prompts)}


def smollmGoldens(directory):
    model, tokenizer = load(directory), AutoTokenizer.from_pretrained(directory)
    ids = tokenizer("The quick brown fox jumps over the lazy dog. In 1969, two people walked on the Moon: é, 한, 🙂!").input_ids[:32]
    logits = logitsOf(model, torch.tensor([ids]))[0]
    positions = [0, 1, 7, 15, len(ids) - 1]
    vocabulary = sorted({int(i) for p in positions for i in logits[p].topk(8).indices} | set(range(0, model.config.vocab_size, 997)))
    prompts = ("Once upon a time, in a small village by the sea,", "def fibonacci(n):\n", "The three most important facts about the Moon are")
    return {"script": "tests/golden/make_model_goldens.py", "versions": versions(), "tolerance_of_spread": 2e-3,
            "greedy": greedy(model, tokenizer, prompts),
            "logits": {"ids": ids, "spread": float(logits.double().std()), "positions": positions, "vocabulary": vocabulary,
                       "values": [[round(float(v), 6) for v in logits[p][vocabulary]] for p in positions], "argmax": logits.argmax(-1).tolist()}}


def versions():
    return {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__}


def writeJson(name, value):
    text = json.dumps(value, indent=1 if name == "models.json" else None)
    text = re.sub(r"\[[\s\d,]*\]", lambda ids: re.sub(r"\s+", "", ids[0]).replace(",", ", "), text)  # lists of ids on one line
    with open(os.path.join(DATA, name), "w") as f:
        f.write(text + "\n")


def main():
    torch.set_num_threads(1)
    models = {name: writeTiny(name) for name in TINY} | {"stories260K": demoGoldens()}
    writeJson("models.json", {"script": "tests/golden/make_model_goldens.py", "seed": SEED, "versions": versions(),
                              "tolerance_of_spread": {"float32": 1e-4}, "models": models})
    writeJson("rope.json", ropeGoldens())
    if directory := os.environ.get("MLA_SMOLLM2_DIR"):
        writeJson("smollm2.json", smollmGoldens(directory))


if __name__ == "__main__":
    main()
