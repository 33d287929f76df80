// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer.h"
#include "tests/fuzz/memory_file.h"

using namespace mla;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const test::MemoryFile input(data, size);
    const auto tokenizer = Tokenizer::open(input.path());
    if (!tokenizer)
        return 0;
    for (const char* text :
         {"Once upon a time, 12 cats\n  don't <s>", "\xC3\xA9\xF0\x9F\x98\x80 a"}) {
        const std::vector<int> ids = tokenizer.value().encode(text, true);
        (void)tokenizer.value().decode(ids);
    }
    return 0;
}
