// SPDX-License-Identifier: GPL-3.0-or-later
// Character classes of Oniguruma (Unicode 16) as items of a PCRE2 class: what stands between the
// brackets, so that it can be joined with other items or negated as a whole. And code points by
// number, as both write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mla::tok
{

[[nodiscard]] std::string escapedCodePoint(char32_t code); ///< "\\x{2581}"
[[nodiscard]] std::string spaceItems();                    ///< \s; PCRE2's would count U+180E
[[nodiscard]] std::string wordItems();                     ///< \w
/// \p{name}, if its extent is known exactly.
[[nodiscard]] std::optional<std::string> propertyItems(std::string name);

struct HexForm {
    std::size_t skip; ///< characters before the digits
    int least, most;  ///< digits
    bool braced;      ///< '}' must follow
};
/// The code point that `text` names at `position`, which is moved behind it if there is one.
[[nodiscard]] std::optional<char32_t> hexCodePoint(std::string_view text, std::size_t& position,
                                                   const HexForm& form);

} // namespace mla::tok
