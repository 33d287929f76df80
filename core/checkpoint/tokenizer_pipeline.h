// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer that a tokenizer.json describes: added tokens, normalizer, pre-tokenizer, BPE,
// post-processor and decoder, as in the `tokenizers` library.
#pragma once

#include <memory>

#include "core/checkpoint/tokenizer_backend.h"
#include "core/checkpoint/tokenizer_json.h"

namespace mla::tok
{

Result<std::unique_ptr<TokenizerBackend>> makePipeline(const TokenizerFile& file);

} // namespace mla::tok
