// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2's bijection between bytes and printable characters: "Ġ" stands for a space.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mla::tok
{

/// Appends the character that stands for each byte.
void appendByteLevel(std::string& out, std::string_view bytes);
/// The byte that a character stands for, if it is one of the 256.
[[nodiscard]] std::optional<unsigned char> byteOfCharacter(char32_t code);

} // namespace mla::tok
