// SPDX-License-Identifier: GPL-3.0-or-later
// A tokenizer.model, run by the sentencepiece library, with the tokens that the files beside it
// add: what Transformers 4's LlamaTokenizer makes of such a directory.
#pragma once

#include <filesystem>
#include <memory>

#include "core/checkpoint/tokenizer_backend.h"

namespace mla::tok
{

Result<std::unique_ptr<TokenizerBackend>> openSentencePiece(const std::filesystem::path& file);

} // namespace mla::tok
