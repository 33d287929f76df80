# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of an MLA draft: a Llama-like decoder whose attention caches a latent and a few rotary key heads."""

from transformers.configuration_utils import PreTrainedConfig


class MlaDraftConfig(PreTrainedConfig):
    """The source checkpoint's keys, and what describes the latent attention.

    Per layer: c = W_dkv x (latent_rank elements) and rope_key_heads rotated key heads of qk_rope_head_dim are cached.
    Keys [qk_nope_head_dim] and values [v_head_dim] of kv_up_heads heads are made from c by kv_b_proj.
    score = attention_scale * (q_nope . k_nope + q_rope . k_rope); YaRN's amplitude is in attention_scale.
    latent_norm: c passes an RMSNorm first. qk_norm: queries and keys of each head pass one before the rotation, and
    1 / rms of each key is cached too. sliding_window holds in the layers that layer_types calls "sliding_attention".
    rope_pairs[layer][rotary head] lists indices into the inverse frequencies of a head of original_head_dim.
    The latent size has a name of its own because vLLM takes any `kv_lora_rank` for its built-in MLA models.
    """

    model_type = "mla_draft"
    keys_to_ignore_at_inference = ["past_key_values"]

    vocab_size: int = 512
    hidden_size: int = 64
    intermediate_size: int = 172
    num_hidden_layers: int = 2
    num_attention_heads: int = 8
    num_key_value_heads: int = 8  # of the materialised keys: as many as query heads
    head_dim: int = 12  # of the materialised queries and keys: qk_nope_head_dim + qk_rope_head_dim
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    use_cache: bool = True
    pad_token_id: int | None = None
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = False
    rope_parameters: dict | None = None
    attention_bias: bool = False  # here: of o_proj alone
    attention_dropout: float = 0.0
    mlp_bias: bool = False
    sliding_window: int | None = None
    layer_types: list[str] | None = None

    latent_rank: int | list[int] = 16
    qk_rope_head_dim: int = 4
    qk_nope_head_dim: int = 8
    v_head_dim: int = 8
    rope_key_heads: int = 1
    kv_up_heads: int = 8
    attention_scale: float = 8**-0.5
    rope_pairs: list | None = None
    query_bias: bool = False
    kv_down_bias: bool = False
    kv_up_bias: bool = False
    qk_norm: bool = False  # with rms_norm_eps
    latent_norm: bool = False
    latent_norm_eps: float = 1e-6
    original_head_dim: int = 8
    original_num_key_value_heads: int = 4
    converter: str | None = None

    def __post_init__(self, **kwargs):
        if self.sliding_window is None:
            self.layer_types = None
        elif self.layer_types is None:
            raise ValueError("`sliding_window` needs `layer_types`, which says in which layers it holds")
        if self.rope_pairs is None:
            pairs = list(range(self.qk_rope_head_dim // 2))
            self.rope_pairs = [[pairs] * self.rope_key_heads] * self.num_hidden_layers
        super().__post_init__(**kwargs)

    def window_of_layer(self, layer_idx: int) -> int | None:
        slides = self.layer_types is not None and self.layer_types[layer_idx] == "sliding_attention"
        return self.sliding_window if slides else None

    def rank_of_layer(self, layer_idx: int) -> int:
        return self.latent_rank if isinstance(self.latent_rank, int) else self.latent_rank[layer_idx]


__all__ = ["MlaDraftConfig"]
