// SPDX-License-Identifier: GPL-3.0-or-later
// SHA-256 (FIPS 180-4): identifies checkpoints and texts in studies. Not used for security.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mla
{

class Sha256
{
public:
    void update(std::span<const std::byte> data);
    void update(std::string_view text);
    /// Ends the message: 64 lower-case hexadecimal digits. The object must not be used afterwards.
    [[nodiscard]] std::string hexDigest();

private:
    void compress(const std::byte* block);
    std::array<std::uint32_t, 8> m_state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> m_block = {};
    std::uint64_t m_length = 0; ///< bytes so far
};

/// Digest of one text.
[[nodiscard]] std::string sha256Hex(std::string_view text);

} // namespace mla
