// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mla
{

namespace
{

constexpr std::size_t blockBytes = 64;

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS
// 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> roundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t bigEndianWord(const std::byte* bytes)
{
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i)
        word = word << 8 | std::to_integer<std::uint32_t>(bytes[i]);
    return word;
}

} // namespace

void Sha256::compress(const std::byte* block)
{
    std::array<std::uint32_t, 64> w = {};
    for (std::size_t t = 0; t < 16; ++t)
        w[t] = bigEndianWord(block + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) {
        const std::uint32_t s0 =
            std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = m_state;
    for (std::size_t t = 0; t < 64; ++t) {
        const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const std::uint32_t choose = (e & f) ^ (~e & g);
        const std::uint32_t t1 = h + sum1 + choose + roundConstants[t] + w[t];
        const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + sum0 + majority;
    }
    const std::array<std::uint32_t, 8> round = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < round.size(); ++i)
        m_state[i] += round[i];
}

void Sha256::update(std::span<const std::byte> data)
{
    while (!data.empty()) {
        const std::size_t filled = m_length % blockBytes;
        const std::size_t taken = std::min(blockBytes - filled, data.size());
        std::memcpy(m_block.data() + filled, data.data(), taken);
        m_length += taken;
        data = data.subspan(taken);
        if (filled + taken == blockBytes)
            compress(m_block.data());
    }
}

void Sha256::update(std::string_view text)
{
    update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::hexDigest()
{
    const std::uint64_t bits = m_length * 8;
    constexpr std::byte one{0x80};
    constexpr std::byte zero{0};
    update(std::span(&one, 1));
    while (m_length % blockBytes != blockBytes - 8)
        update(std::span(&zero, 1));
    std::array<std::byte, 8> length = {};
    for (std::size_t i = 0; i < length.size(); ++i)
        length[i] = static_cast<std::byte>(bits >> (56 - 8 * i) & 0xff);
    update(length);
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint32_t word : m_state)
        for (int shift = 28; shift >= 0; shift -= 4)
            text += digits[word >> shift & 0xf];
    return text;
}

std::string sha256Hex(std::string_view text)
{
    Sha256 hash;
    hash.update(text);
    return hash.hexDigest();
}

} // namespace mla
