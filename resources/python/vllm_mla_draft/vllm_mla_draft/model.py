# SPDX-License-Identifier: GPL-3.0-or-later
"""An MLA draft as a vLLM model: vLLM's Llama with an attention of its own.

Keys and values are made from the latent for every query head, because vLLM's latent caches take only the shapes of
DeepSeek's own models. Shapes: T tokens of the batch, H query heads, d_n + d_r dims a query head, n_r rotary key heads.
"""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import pad
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.models.llama import LlamaDecoderLayer, LlamaForCausalLM, LlamaModel
from vllm.model_executor.models.utils import WeightsMapper, extract_layer_index

from .modeling_mla_draft import inverse_frequencies

# What the attention for CPUs takes; those for GPUs take these too.
HEAD_WIDTHS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
# Only the MLP's projections are joined here: q_proj stays what it is.
WEIGHTS = WeightsMapper(orig_to_new_stacked={".gate_proj": (".gate_up_proj", 0), ".up_proj": (".gate_up_proj", 1)})


def padded_width(width: int) -> int:
    for taken in HEAD_WIDTHS:
        if taken >= width:
            return taken
    raise ValueError(f"query heads of {width} dims are wider than vLLM's attention takes, {HEAD_WIDTHS[-1]}")


class MlaDraftHeadNorm(nn.Module):
    """RMSNorm of heads [T, heads, d_n + d_r], with weights per rotary key head."""

    def __init__(self, groups: int, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(groups, width), requires_grad=False)
        self.eps = eps

    def forward(self, heads: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(heads.float().pow(2).mean(-1, keepdim=True) + self.eps).to(heads.dtype)
        return heads * scale * self.weight.repeat_interleave(heads.shape[1] // self.weight.shape[0], dim=0)


class MlaDraftAttention(nn.Module):
    """Takes what LlamaDecoderLayer hands an attention; everything else is in the config."""

    def __init__(self, config, hidden_size, num_heads, cache_config=None, quant_config=None, prefix="", **_):
        super().__init__()
        layer = extract_layer_index(prefix)
        self.num_heads, self.up_heads, self.rope_heads = num_heads, config.kv_up_heads, config.rope_key_heads
        self.nope_dim, self.rope_dim, self.v_dim = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        self.head_dim, self.rank = self.nope_dim + self.rope_dim, config.rank_of_layer(layer)
        self.padded_dim = padded_width(max(self.head_dim, self.v_dim))

        def linear(name, inputs, outputs, bias):
            return ReplicatedLinear(
                inputs, outputs, bias=bias, quant_config=quant_config, prefix=f"{prefix}.{name}", return_bias=False
            )

        down, up = self.rank + self.rope_heads * self.rope_dim, self.up_heads * (self.nope_dim + self.v_dim)
        self.q_proj = linear("q_proj", hidden_size, num_heads * self.head_dim, config.query_bias)
        self.kv_a_proj_with_mqa = linear("kv_a_proj_with_mqa", hidden_size, down, config.kv_down_bias)
        self.kv_b_proj = linear("kv_b_proj", self.rank, up, config.kv_up_bias)
        self.o_proj = linear("o_proj", num_heads * self.v_dim, hidden_size, config.attention_bias)
        self.kv_a_layernorm = RMSNorm(self.rank, eps=config.latent_norm_eps) if config.latent_norm else None
        norm = partial(MlaDraftHeadNorm, self.rope_heads, self.head_dim, config.rms_norm_eps)
        self.q_norm, self.k_norm = (norm(), norm()) if config.qk_norm else (None, None)
        frequencies = inverse_frequencies(config)
        pairs = [[frequencies[pair] for pair in head] for head in config.rope_pairs[layer]]
        self.register_buffer("frequencies", torch.tensor(pairs, dtype=torch.float64), persistent=False)  # [n_r, d_r / 2]
        self.attn = Attention(
            num_heads,
            self.padded_dim,
            config.attention_scale,
            num_kv_heads=num_heads,
            cache_config=cache_config,
            quant_config=quant_config,
            per_layer_sliding_window=config.window_of_layer(layer),
            prefix=f"{prefix}.attn",
        )

    def rotate(self, heads: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """heads [T, n, d_r], halves split, by the frequencies of the rotary key head that each belongs to"""
        angles = positions[:, None, None].to(torch.float64) * self.frequencies  # [T, n_r, d_r / 2]
        angles = angles.repeat_interleave(heads.shape[1] // self.rope_heads, dim=1)
        cos, sin = angles.cos().float(), angles.sin().float()
        a, b = heads.float().chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(heads.dtype)

    def keys_and_values(self, hidden_states: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """hidden_states [T, d] -> keys [T, H, d_n + d_r], values [T, H, d_v]"""
        down = self.kv_a_proj_with_mqa(hidden_states)
        latent, k_rope = down.split([self.rank, self.rope_heads * self.rope_dim], dim=-1)
        latent = latent.contiguous()
        if self.kv_a_layernorm is not None:
            latent = self.kv_a_layernorm(latent)
        up = self.kv_b_proj(latent).view(-1, self.up_heads, self.nope_dim + self.v_dim)
        k_nope, values = up.split([self.nope_dim, self.v_dim], dim=-1)
        k_rope = k_rope.reshape(-1, self.rope_heads, self.rope_dim)
        if self.k_norm is not None:  # then there are as many rotary key heads as heads of kv_b_proj
            k_nope, k_rope = self.k_norm(torch.cat((k_nope, k_rope), dim=-1)).split([self.nope_dim, self.rope_dim], dim=-1)
        k_rope = self.rotate(k_rope, positions)

        def to_queries(heads):
            return heads.repeat_interleave(self.num_heads // heads.shape[1], dim=1)

        return torch.cat((to_queries(k_nope), to_queries(k_rope)), dim=-1), to_queries(values)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        query = self.q_proj(hidden_states).view(-1, self.num_heads, self.head_dim)
        if self.q_norm is not None:
            query = self.q_norm(query)
        q_nope, q_rope = query.split([self.nope_dim, self.rope_dim], dim=-1)
        query = torch.cat((q_nope, self.rotate(q_rope, positions)), dim=-1)
        keys, values = self.keys_and_values(hidden_states, positions)

        def widen(heads):  # zeros change no score, and their values are cut off below
            return pad(heads, (0, self.padded_dim - heads.shape[-1])).flatten(1)

        mixed = self.attn(widen(query), widen(keys), widen(values)).view(-1, self.num_heads, self.padded_dim)
        return self.o_proj(mixed[..., : self.v_dim].flatten(1))


class MlaDraftModel(LlamaModel):
    hf_to_vllm_mapper = WEIGHTS


class MlaDraftForCausalLM(LlamaForCausalLM):
    hf_to_vllm_mapper = WEIGHTS
    packed_modules_mapping = {"gate_up_proj": ["gate_proj", "up_proj"]}

    def _init_model(self, vllm_config, prefix="", layer_type=LlamaDecoderLayer):
        layer_type = partial(layer_type, attn_layer_type=MlaDraftAttention)
        return MlaDraftModel(vllm_config=vllm_config, prefix=prefix, layer_type=layer_type)
