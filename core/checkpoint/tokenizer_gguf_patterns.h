// SPDX-License-Identifier: GPL-3.0-or-later
// What the names of GGUF's "tokenizer.ggml.pre" stand for (github.com/ggml-org/llama.cpp,
// src/llama-vocab.cpp), in the terms of a tokenizer.json.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace mla::tok
{

struct GgufPreTokenizer {
    nlohmann::json normalizer; ///< null if there is none
    nlohmann::json preTokenizer;
    bool ignoreMerges = false;
    bool addsBos = false; ///< where the file does not say
};

/// Nothing for a name that is not known.
std::optional<GgufPreTokenizer> ggufPreTokenizer(const std::string& name);
std::string knownGgufPreTokenizers(); ///< "default, gpt-2, …"

} // namespace mla::tok
