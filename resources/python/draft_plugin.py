# SPDX-License-Identifier: GPL-3.0-or-later
"""The vLLM plugin that travels in a draft directory of the layout vllm-plugin, used without installing it."""
import os
import sys

_PACKAGE = "vllm_mla_draft"


def travels_in(folder):
    """Does the package stand in the folder?"""
    return os.path.isfile(os.path.join(folder, _PACKAGE, "pyproject.toml"))


def register(folder):
    """What vLLM does at its start with an installed package. Before vLLM is asked for the model."""
    sys.path.insert(0, os.path.join(folder, _PACKAGE))
    # The class of a model is looked up in a process of its own.
    os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")])
    import vllm_mla_draft

    vllm_mla_draft.register()
