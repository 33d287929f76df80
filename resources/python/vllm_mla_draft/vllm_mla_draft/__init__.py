# SPDX-License-Identifier: GPL-3.0-or-later
"""MLA drafts in vLLM: vLLM calls register() in each of its processes, before it reads a model."""


def register():
    """May be called more than once. The model itself is imported only when one is loaded."""
    from transformers import AutoConfig
    from vllm import ModelRegistry

    from .configuration_mla_draft import MlaDraftConfig

    AutoConfig.register(MlaDraftConfig.model_type, MlaDraftConfig, exist_ok=True)
    ModelRegistry.register_model("MlaDraftForCausalLM", "vllm_mla_draft.model:MlaDraftForCausalLM")
