// SPDX-License-Identifier: GPL-3.0-or-later
// Loading a tokenizer of 150,000 tokens and encoding this repository with it, beside the
// `tokenizers` library on the same machine at the same time (MLA_PYTHON):
//
//     MLA_PYTHON=… bench_tokenizer [TOKENIZER.json]
//
// Times are seconds of one processor. Aims: loading below 0.5 s, and at least a third of the
// library's speed on one thread.
#include "core/base/file.h"
#include "core/checkpoint/tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

namespace
{

namespace fs = std::filesystem;

double secondsSince(std::clock_t start)
{
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<std::string_view> linesOf(std::string_view text)
{
    std::vector<std::string_view> lines;
    for (std::size_t at = 0; at + 4 <= text.size();) {
        std::uint32_t length = 0;
        std::memcpy(&length, text.data() + at, 4);
        lines.push_back(text.substr(at + 4, length));
        at += 4 + length;
    }
    return lines;
}

std::string quoted(const std::string& argument)
{
    return "'" + argument + "'";
}

bool runLibrary(const fs::path& folder, const char* tokenizer)
{
    const char* python = std::getenv("MLA_PYTHON");
    if (python == nullptr) {
        std::cerr << "MLA_PYTHON must name a Python with the tokenizers library\n";
        return false;
    }
    std::string command = quoted(python) + " " +
                          quoted(MLA_TEST_DATA "/bench/tokenizer_library.py") + " " +
                          quoted(MLA_TEST_DATA "/..") + " " + quoted(folder.string());
    if (tokenizer != nullptr)
        command += " " + quoted(tokenizer);
    return std::system(command.c_str()) == 0;
}

int measure(const fs::path& folder)
{
    const auto library = nlohmann::json::parse(*mla::readFile(folder / "library.json"));
    const std::string text = *mla::readFile(folder / "text");
    const auto lines = linesOf(text);
    double load = 1e9;
    for (int i = 0; i < 3; ++i) {
        const std::clock_t start = std::clock();
        const auto opened = mla::Tokenizer::open(folder);
        load = std::min(load, secondsSince(start));
        if (!opened) {
            std::cerr << opened.error().text() << "\n";
            return 1;
        }
    }
    const auto tokenizer = mla::Tokenizer::open(folder);
    const std::clock_t start = std::clock();
    std::size_t tokens = 0;
    for (const std::string_view line : lines)
        tokens += tokenizer->encode(line).size();
    const double encode = secondsSince(start);
    const double megabytes = static_cast<double>(text.size() - 4 * lines.size()) / 1e6;
    std::cout << "vocabulary " << tokenizer->size() << ", text " << megabytes << " MB, " << tokens
              << " tokens (library: " << library["tokens"] << ")\n"
              << "load    " << load << " s, library " << library["load"] << " s\n"
              << "encode  " << megabytes / encode << " MB/s, library "
              << megabytes / library["encode"].get<double>() << " MB/s, ratio "
              << library["encode"].get<double>() / encode << "\n";
    return tokens == library["tokens"].get<std::size_t>() ? 0 : 1;
}

} // namespace

int main(int count, char** arguments)
{
    std::string pattern = (fs::temp_directory_path() / "mla-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        return 1;
    const bool ran = runLibrary(pattern, count > 1 ? arguments[1] : nullptr);
    const int status = ran ? measure(pattern) : 1;
    fs::remove_all(pattern);
    return status;
}
