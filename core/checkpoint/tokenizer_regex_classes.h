// SPDX-License-Identifier: GPL-3.0-or-later
// Character classes of Oniguruma (Unicode 16) as items of a PCRE2 class: what stands between the
// brackets, so that it can be joined with other items or negated as a whole.
#pragma once

#include <optional>
#include <string>

namespace mla::tok
{

[[nodiscard]] std::string escapedCodePoint(char32_t code); ///< "\\x{2581}"
[[nodiscard]] std::string spaceItems();                    ///< \s; PCRE2's would count U+180E
[[nodiscard]] std::string wordItems();                     ///< \w
/// \p{name}, if its extent is known exactly.
[[nodiscard]] std::optional<std::string> propertyItems(std::string name);

} // namespace mla::tok
