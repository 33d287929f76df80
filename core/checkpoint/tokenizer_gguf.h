// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer inside a GGUF file, as the tokenizer.json that it was made from.
#pragma once

#include <filesystem>

#include "core/base/result.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/tokenizer_json.h"

namespace mla
{

namespace tok
{
/// Keys "tokenizer.ggml.*". Models "gpt2" (byte-level BPE; "pre" names the pre-tokenizer) and
/// "llama" (pieces with scores, whose merges are derived as Transformers does); others and unknown
/// pre-tokenizers are refused by name.
Result<TokenizerFile> tokenizerOfGguf(const GgufMetadata& metadata);
} // namespace tok

/// Writes the tokenizer of `gguf` as a tokenizer.json that the `tokenizers` library reads.
Status writeTokenizerJson(const GgufFile& gguf, const std::filesystem::path& path);

} // namespace mla
