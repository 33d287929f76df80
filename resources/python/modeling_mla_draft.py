# SPDX-License-Identifier: GPL-3.0-or-later
"""An MLA draft in Transformers. The cache holds the latent and the rotated rotary keys; keys and values are made from it.
With QK-norm each rotary key carries 1 / rms of its whole key as one more element.

Without a cache (training, or vLLM's Transformers backend, which keeps its own) the attention function gets the
materialised keys and values.
"""

import math

import torch
from torch import nn
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation import GenerationMixin
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm, eager_attention_forward
from transformers.utils import can_return_tuple
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import capture_outputs

from .configuration_mla_draft import MlaDraftConfig


def inverse_frequencies(config: MlaDraftConfig) -> list[float]:
    """Radians per position of each rotary pair of a source head, [original_head_dim / 2], in double precision."""
    rope, dim = config.rope_parameters, config.original_head_dim
    frequencies = [rope["rope_theta"] ** (-2 * pair / dim) for pair in range(dim // 2)]
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return frequencies
    if kind == "linear":
        return [f / rope["factor"] for f in frequencies]
    if kind == "llama3":
        return [_llama3_frequency(f, rope) for f in frequencies]
    if kind == "yarn":
        return _yarn_frequencies(frequencies, rope, dim)
    raise ValueError(f"mla_draft does not know the rope type `{kind}`; it knows default, linear, llama3 and yarn")


def _llama3_frequency(frequency: float, rope: dict) -> float:
    """Short wavelengths stay, long ones are slowed by `factor`, those between are blended."""
    turns = rope["original_max_position_embeddings"] * frequency / (2 * math.pi)  # within the original context
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = min(max((turns - low) / (high - low), 0.0), 1.0)
    return kept * frequency + (1 - kept) * frequency / rope["factor"]


def _yarn_frequencies(frequencies: list[float], rope: dict, dim: int) -> list[float]:
    """Pairs of many turns in the original context stay, those of few are slowed by `factor`, a linear ramp between."""

    def pair_of(turns: float) -> float:
        ratio = rope["original_max_position_embeddings"] / (turns * 2 * math.pi)
        return dim * math.log(ratio) / (2 * math.log(rope["rope_theta"]))

    low, high = pair_of(rope.get("beta_fast") or 32), pair_of(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    width = high - low or 0.001
    slowed = [min(max((pair - low) / width, 0.0), 1.0) for pair in range(len(frequencies))]
    return [s * f / rope["factor"] + (1 - s) * f for s, f in zip(slowed, frequencies)]


class MlaDraftHeadNorm(nn.Module):
    """RMSNorm of query or key heads, nope dims before rotary ones, with weights per rotary key head."""

    def __init__(self, config: MlaDraftConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.rope_key_heads, config.head_dim))
        self.eps = config.rms_norm_eps

    def scale(self, heads: torch.Tensor) -> torch.Tensor:
        """1 / rms of heads [.., head_dim]: [.., 1]"""
        return torch.rsqrt(heads.float().pow(2).mean(-1, keepdim=True) + self.eps).to(heads.dtype)

    def weights_of(self, heads: int) -> torch.Tensor:
        return self.weight.repeat_interleave(heads // self.weight.shape[0], dim=0)[:, None]  # [heads, 1, head_dim]


class MlaDraftRotary(nn.Module):
    """Rotates half-split rotary heads; every rotary key head has its own frequencies.

    The frequencies are Python numbers, not a buffer, so that no dtype cast of the model can reach them.
    """

    def __init__(self, config: MlaDraftConfig, layer_idx: int):
        super().__init__()
        frequencies = inverse_frequencies(config)
        self.frequencies = [[frequencies[pair] for pair in head] for head in config.rope_pairs[layer_idx]]

    def forward(self, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """position_ids [B, T] -> cos, sin [B, n_r, T, d_r / 2] in float32"""
        exact = torch.float32 if position_ids.device.type == "mps" else torch.float64
        frequencies = torch.tensor(self.frequencies, dtype=exact, device=position_ids.device)
        angles = position_ids[:, None, :, None].to(exact) * frequencies[:, None, :]
        return angles.cos().float(), angles.sin().float()

    @staticmethod
    def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


class MlaDraftAttention(nn.Module):
    def __init__(self, config: MlaDraftConfig, layer_idx: int):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.num_heads, self.up_heads, self.rope_heads = config.num_attention_heads, config.kv_up_heads, config.rope_key_heads
        self.nope_dim, self.rope_dim, self.v_dim = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        self.head_dim = self.nope_dim + self.rope_dim
        self.rank = config.rank_of_layer(layer_idx)
        self.scaling = config.attention_scale
        self.attention_dropout = config.attention_dropout
        self.num_key_value_groups = 1  # keys and values are materialised for every query head
        self.is_causal = True
        hidden, down = config.hidden_size, self.rank + self.rope_heads * self.rope_dim
        self.q_proj = nn.Linear(hidden, self.num_heads * self.head_dim, bias=config.query_bias)
        self.kv_a_proj_with_mqa = nn.Linear(hidden, down, bias=config.kv_down_bias)
        self.kv_b_proj = nn.Linear(self.rank, self.up_heads * (self.nope_dim + self.v_dim), bias=config.kv_up_bias)
        self.o_proj = nn.Linear(self.num_heads * self.v_dim, hidden, bias=config.attention_bias)
        self.sliding_window = config.window_of_layer(layer_idx)
        self.kv_a_layernorm = LlamaRMSNorm(self.rank, eps=config.latent_norm_eps) if config.latent_norm else None
        self.q_norm = MlaDraftHeadNorm(config) if config.qk_norm else None
        self.k_norm = MlaDraftHeadNorm(config) if config.qk_norm else None
        self.rotary = MlaDraftRotary(config, layer_idx)

    def up(self, latent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """latent [B, 1, S, r] -> nope keys [B, up_heads, S, d_n], values [B, up_heads, S, d_v]"""
        batch, _, length, _ = latent.shape
        up = self.kv_b_proj(latent[:, 0]).view(batch, length, self.up_heads, -1).transpose(1, 2)
        return up.split([self.nope_dim, self.v_dim], dim=-1)

    def cached_keys(self, latent: torch.Tensor, k_rope: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """What is cached of rotary keys [B, n_r, T, d_r]: rotated, with QK-norm weighted and 1 / rms appended."""
        if self.k_norm is None:
            return self.rotary.rotate(k_rope, cos, sin)
        scale = self.k_norm.scale(torch.cat((self.up(latent)[0], k_rope), dim=-1))
        weights = self.k_norm.weights_of(self.rope_heads)[..., self.nope_dim :]
        return torch.cat((self.rotary.rotate(k_rope * weights, cos, sin), scale), dim=-1)

    def materialise(self, latent: torch.Tensor, k_rope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """latent [B, 1, S, r], cached keys [B, n_r, S, ..] -> keys [B, H, S, d_n + d_r], values [B, H, S, d_v]"""
        k_nope, values = (x.repeat_interleave(self.num_heads // self.up_heads, dim=1) for x in self.up(latent))
        k_rope = k_rope.repeat_interleave(self.num_heads // self.rope_heads, dim=1)
        if self.k_norm is None:
            return torch.cat((k_nope, k_rope), dim=-1), values
        k_rope, scale = k_rope.split([self.rope_dim, 1], dim=-1)
        weights = self.k_norm.weights_of(self.num_heads)[..., : self.nope_dim]
        return torch.cat((k_nope * weights, k_rope), dim=-1) * scale, values

    def forward(
        self,
        hidden_states: torch.Tensor,  # [B, T, d]
        position_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        **kwargs,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        batch, length = hidden_states.shape[:-1]
        query = self.q_proj(hidden_states).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
        if self.q_norm is not None:
            query = query * self.q_norm.scale(query) * self.q_norm.weights_of(self.num_heads)
        q_nope, q_rope = query.split([self.nope_dim, self.rope_dim], dim=-1)
        down = self.kv_a_proj_with_mqa(hidden_states)
        latent, k_rope = down.split([self.rank, self.rope_heads * self.rope_dim], dim=-1)
        latent = latent[:, None] if self.kv_a_layernorm is None else self.kv_a_layernorm(latent)[:, None]
        k_rope = k_rope.view(batch, length, self.rope_heads, self.rope_dim).transpose(1, 2)

        cos, sin = self.rotary(position_ids)
        k_rope = self.cached_keys(latent, k_rope, cos, sin)
        group = self.num_heads // self.rope_heads
        q_rope = self.rotary.rotate(q_rope, cos.repeat_interleave(group, dim=1), sin.repeat_interleave(group, dim=1))

        if past_key_values is not None:
            latent, k_rope = past_key_values.update(latent, k_rope, self.layer_idx)
        query = torch.cat((q_nope, q_rope), dim=-1)
        keys, values = self.materialise(latent, k_rope)
        implementation = self.config._attn_implementation
        if implementation not in ("eager", "sdpa"):  # the others want values as wide as keys
            values = nn.functional.pad(values, (0, self.head_dim - self.v_dim))
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention_forward)
        dropout = self.attention_dropout if self.training else 0.0
        mixed, weights = attend(
            self,
            query,
            keys,
            values,
            attention_mask,
            dropout=dropout,
            scaling=self.scaling,
            sliding_window=self.sliding_window,
            **kwargs,
        )
        mixed = mixed.reshape(batch, length, self.num_heads, -1)[..., : self.v_dim]
        return self.o_proj(mixed.reshape(batch, length, -1)), weights


class MlaDraftDecoderLayer(GradientCheckpointingLayer):
    def __init__(self, config: MlaDraftConfig, layer_idx: int):
        super().__init__()
        self.self_attn = MlaDraftAttention(config, layer_idx)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden_states: torch.Tensor, **kwargs) -> torch.Tensor:
        hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states), **kwargs)[0]
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class MlaDraftPreTrainedModel(PreTrainedModel):
    config_class = MlaDraftConfig
    config: MlaDraftConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["MlaDraftDecoderLayer"]
    _skip_keys_device_placement = ["past_key_values"]
    _supports_sdpa = True
    _supports_attention_backend = True
    _can_record_outputs = {"hidden_states": MlaDraftDecoderLayer, "attentions": MlaDraftAttention}


class MlaDraftModel(MlaDraftPreTrainedModel):
    def __init__(self, config: MlaDraftConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.layers = nn.ModuleList(MlaDraftDecoderLayer(config, i) for i in range(config.num_hidden_layers))
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.gradient_checkpointing = False
        self.post_init()

    def masks(self, **arguments) -> dict[int | None, torch.Tensor | None]:
        """The attention mask of each window that a layer has; None stands for all keys."""
        windows = {layer.self_attn.sliding_window for layer in self.layers}
        return {
            window: (create_causal_mask if window is None else create_sliding_window_causal_mask)(**arguments)
            for window in windows
        }

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.LongTensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        use_cache: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPast:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of input_ids and inputs_embeds")
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        if position_ids is None:
            seen = past_key_values.get_seq_length() if past_key_values is not None else 0
            position_ids = (torch.arange(inputs_embeds.shape[1], device=inputs_embeds.device) + seen)[None]
        masks = self.masks(
            config=self.config,
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            position_ids=position_ids,
        )
        hidden_states = inputs_embeds
        for layer in self.layers:
            hidden_states = layer(
                hidden_states,
                position_ids=position_ids,
                attention_mask=masks[layer.self_attn.sliding_window],
                past_key_values=past_key_values,
                **kwargs,
            )
        return BaseModelOutputWithPast(last_hidden_state=self.norm(hidden_states), past_key_values=past_key_values)


class MlaDraftForCausalLM(MlaDraftPreTrainedModel, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: MlaDraftConfig):
        super().__init__(config)
        self.model = MlaDraftModel(config)
        self.vocab_size = config.vocab_size
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.LongTensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs,
    ) -> CausalLMOutputWithPast:
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            **kwargs,
        )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(outputs.last_hidden_state[:, kept, :])
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


__all__ = ["MlaDraftPreTrainedModel", "MlaDraftModel", "MlaDraftForCausalLM"]
