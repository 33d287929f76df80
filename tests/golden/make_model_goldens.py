# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden logits and greedy tokens of Hugging Face Transformers (float32, CPU), and the tiny checkpoints they belong to.

    HF_HUB_OFFLINE=1 python tests/golden/make_model_goldens.py            all but SmolLM2
    MLA_SMOLLM2_DIR=DIR ... make_model_goldens.py                         SmolLM2-135M-Instruct as well

Writes, under data/:
  models.json            versions, seed, tolerance and per model: checkpoint, logits file, spread (standard deviation of all its logits)
                         and for the demo checkpoint greedy [{prompt, prompt_ids, ids, smallest_margin}], 64 new ids each
  model_NAME.safetensors input_ids I64 [B,T], logits F32 [B,T,vocab]
  tiny/NAME/             checkpoints written by Transformers from seeded weights:
    biased               attention_bias and mlp_bias, large biases, GQA 4/2, tied, float32
    llama3               llama3 rope scaling, original length 64, logits to position 159, bfloat16
    linear               linear rope scaling, config.json of the older generation (rope_theta, rope_scaling, torch_dtype), bfloat16
    wide-heads           head_dim 16 where hidden/heads is 8, untied, float16
    sharded              weights in several files with an index, untied, bfloat16
  smollm2.json           greedy as above; logits {ids, spread, positions, vocabulary, values [positions][vocabulary], argmax [T]}
"""
import json
import os
import platform
import shutil

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
DEMO = os.path.join(HERE, "..", "..", "resources", "demo", "stories260K")
SEED = 1234
BASE = dict(vocab_size=64, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2)
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TINY = {
    "biased": (dict(attention_bias=True, mlp_bias=True, rope_parameters=DEFAULT_ROPE), torch.float32, 32, {}),
    "llama3": (dict(num_attention_heads=2, num_key_value_heads=1,
                    rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                     "high_freq_factor": 4.0, "original_max_position_embeddings": 64}), torch.bfloat16, 160, {}),
    "linear": (dict(rope_parameters={"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}), torch.bfloat16, 48, {}),
    "wide-heads": (dict(head_dim=16, tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE), torch.float16, 32, {}),
    "sharded": (dict(tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE), torch.bfloat16, 32, {"max_shard_size": "16KB"}),
}


def tinyModel(name, settings, dtype):
    """Seeded weights (rounded to dtype) large enough that attention is sharp and positions matter; biases several times larger than W x."""
    generator = torch.Generator().manual_seed(SEED + sorted(TINY).index(name))
    model = LlamaForCausalLM(LlamaConfig(**(BASE | settings)))
    with torch.no_grad():
        for key, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if key.endswith(".bias"):
                p.copy_(noise * (4.0 if "self_attn" in key else 1.0))
            elif p.dim() == 1:
                p.copy_(1 + 0.3 * noise)
            else:
                p.copy_(noise * (1.5 if "q_proj" in key or "k_proj" in key else 1.0) / p.shape[1] ** 0.5)
            p.copy_(p.to(dtype))
    return model.eval()


def olderConfig(directory):
    """Rewrites config.json as the previous generation of Transformers wrote it."""
    path = os.path.join(directory, "config.json")
    with open(path) as f:
        config = json.load(f)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = {"type": rope["rope_type"], "factor": rope["factor"]}
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.44.0"
    with open(path, "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")


@torch.no_grad()
def logitsOf(model, ids):
    return model(ids, use_cache=False).logits.float()


def load(directory):
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


def writeLogits(name, ids, logits):
    path = os.path.join(DATA, f"model_{name}.safetensors")
    save_file({"input_ids": ids, "logits": logits.contiguous()}, path)
    os.chmod(path, 0o644)
    return {"logits": f"model_{name}.safetensors", "spread": float(logits.double().std())}


def writeTiny(name):
    settings, dtype, length, saving = TINY[name]
    directory = os.path.join(DATA, "tiny", name)
    shutil.rmtree(directory, ignore_errors=True)
    model = tinyModel(name, settings, dtype)
    ids = torch.randint(3, BASE["vocab_size"], (1 if length > 64 else 2, length), generator=torch.Generator().manual_seed(SEED))
    expected = logitsOf(model, ids)  # before the cast, which would round the rope frequencies too
    model.to(dtype).save_pretrained(directory, **saving)
    if name == "linear":
        olderConfig(directory)
    for file in os.listdir(directory):
        os.chmod(os.path.join(directory, file), 0o644)
    logits = logitsOf(load(directory), ids)
    assert (logits - expected).abs().max() < 1e-5, f"{name}: the saved checkpoint differs from the model"
    return {"checkpoint": f"tiny/{name}"} | writeLogits(name, ids, logits)


def greedy(model, tokenizer, prompts, count=64):
    """Greedy continuations, and the smallest gap between the two best logits on the way (a near-tie may flip elsewhere)."""
    result = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        out = model.generate(ids, max_new_tokens=count, do_sample=False)
        new = out[0, ids.shape[1]:]
        assert len(new) == count, f"{prompt!r} stops after {len(new)} tokens"
        best = logitsOf(model, out)[0, ids.shape[1] - 1:-1].topk(2).values
        result.append({"prompt": prompt, "prompt_ids": ids[0].tolist(), "ids": new.tolist(),
                       "smallest_margin": float((best[:, 0] - best[:, 1]).min())})
    return result


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
    with open(os.path.join(DATA, name), "w") as f:
        json.dump(value, f, indent=None if name == "smollm2.json" else 1)
        f.write("\n")


def main():
    torch.set_num_threads(1)
    models = {name: writeTiny(name) for name in TINY} | {"stories260K": demoGoldens()}
    writeJson("models.json", {"script": "tests/golden/make_model_goldens.py", "seed": SEED, "versions": versions(),
                              "tolerance_of_spread": {"float32": 1e-4}, "models": models})
    if directory := os.environ.get("MLA_SMOLLM2_DIR"):
        writeJson("smollm2.json", smollmGoldens(directory))


if __name__ == "__main__":
    main()
