// SPDX-License-Identifier: GPL-3.0-or-later
// The outside of a tokenizer.model (github.com/google/sentencepiece, sentencepiece_model.proto),
// checked before the sentencepiece library sees it: the library trusts much of what it reads.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace mla::tok
{

/// Every length lies within the file, the model is BPE or unigram, pieces are text with finite
/// scores and known types, and the tables of character mappings point nowhere outside themselves.
Status checkSentencePieceModel(std::string_view bytes);

} // namespace mla::tok
