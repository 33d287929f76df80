// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/torch_file.h"

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/file.h"

namespace mla
{

namespace
{

constexpr std::uintmax_t maximalBytes = 16 << 20;

/// Little-endian reading within bounds; `ok` falls at the first read beyond them.
struct Bytes {
    std::string_view data;
    std::size_t at = 0;
    bool ok = true;

    std::string_view take(std::size_t count)
    {
        if (!ok || count > data.size() - at) {
            ok = false;
            return {};
        }
        at += count;
        return data.substr(at - count, count);
    }
    std::uint64_t number(std::size_t bytes)
    {
        std::uint64_t value = 0;
        const std::string_view raw = take(bytes);
        for (std::size_t i = raw.size(); i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(raw[i]);
        return value;
    }
    std::string_view line()
    {
        const std::size_t end = ok ? data.find('\n', at) : std::string_view::npos;
        if (end == std::string_view::npos) {
            ok = false;
            return {};
        }
        const std::string_view text = data.substr(at, end - at);
        at = end + 1;
        return text;
    }
};

/// Names without their first folder ("archive/") and data of the stored members of a ZIP file.
std::optional<std::map<std::string, std::string_view>> zipMembers(std::string_view file)
{
    const std::size_t end = file.rfind("PK\x05\x06");
    if (end == std::string_view::npos)
        return {};
    Bytes directory{file, end + 10};
    const std::uint64_t count = directory.number(2);
    directory.take(4);
    directory.at = std::min<std::size_t>(directory.number(4), file.size());
    std::map<std::string, std::string_view> members;
    for (std::uint64_t i = 0; i < count && directory.ok; ++i) {
        if (directory.take(4) != "PK\x01\x02")
            return {};
        directory.take(6);
        const std::uint64_t method = directory.number(2);
        directory.take(12);
        const std::uint64_t size = directory.number(4);
        const std::uint64_t nameSize = directory.number(2);
        const std::uint64_t rest = directory.number(2) + directory.number(2);
        directory.take(8);
        const std::uint64_t offset = directory.number(4);
        const std::string_view name = directory.take(nameSize);
        directory.take(rest);
        Bytes local{file, std::min<std::size_t>(offset, file.size())};
        local.take(26);
        const std::uint64_t skipped = local.number(2) + local.number(2);
        local.take(skipped);
        const std::string_view data = local.take(size);
        if (!local.ok || method != 0)
            return {};
        members[std::string(name.substr(name.find('/') + 1))] = data;
    }
    return directory.ok ? std::optional(std::move(members)) : std::nullopt;
}

struct Value {
    enum Kind { Other, Mark, Integer, Text, Global, Tuple, Storage, Tensor } kind = Other;
    std::int64_t integer = 0;
    std::string text = {};         ///< Text; Global: "module name"; Storage: its key
    std::vector<Value> items = {}; ///< Tuple; Tensor: storage, offset, shape, strides
};

/// As much of the pickle machine as a tensor needs.
class Pickle
{
public:
    explicit Pickle(std::string_view data) : m_in{data} {}
    std::optional<Value> run();

private:
    bool step(unsigned char opcode);
    bool push(Value value)
    {
        m_stack.push_back(std::move(value));
        return m_in.ok && m_stack.size() < 4096;
    }
    bool pushInteger(std::uint64_t value)
    {
        return push({.kind = Value::Integer, .integer = static_cast<std::int64_t>(value)});
    }
    bool pushText(std::size_t size)
    {
        return push({.kind = Value::Text, .text = std::string(m_in.take(size))});
    }
    std::optional<Value> pop();
    bool tuple(std::size_t count);
    bool markedTuple();
    bool storage();
    bool reduce();
    bool recall(std::uint64_t key)
    {
        const auto it = m_memo.find(key);
        return it != m_memo.end() && push(it->second);
    }
    bool remember(std::uint64_t key)
    {
        if (m_stack.empty() || m_memo.size() > 4096)
            return false;
        m_memo[key] = m_stack.back();
        return true;
    }

    Bytes m_in;
    std::vector<Value> m_stack;
    std::map<std::uint64_t, Value> m_memo;
};

std::optional<Value> Pickle::pop()
{
    if (m_stack.empty())
        return {};
    Value value = std::move(m_stack.back());
    m_stack.pop_back();
    return value;
}

bool Pickle::tuple(std::size_t count)
{
    if (m_stack.size() < count)
        return false;
    Value value{.kind = Value::Tuple};
    value.items.assign(m_stack.end() - static_cast<std::ptrdiff_t>(count), m_stack.end());
    m_stack.resize(m_stack.size() - count);
    return push(std::move(value));
}

bool Pickle::markedTuple()
{
    std::size_t count = 0;
    while (count < m_stack.size() && m_stack[m_stack.size() - 1 - count].kind != Value::Mark)
        ++count;
    if (count == m_stack.size() || !tuple(count))
        return false;
    m_stack.erase(m_stack.end() - 2); // the mark
    return true;
}

/// ('storage', torch.ByteStorage, '0', 'cpu', 5760)
bool Pickle::storage()
{
    const std::optional<Value> id = pop();
    if (!id || id->items.size() != 5 || id->items[1].kind != Value::Global ||
        id->items[2].kind != Value::Text)
        return false;
    return push({.kind = Value::Storage, .text = id->items[2].text, .items = {id->items[1]}});
}

bool Pickle::reduce()
{
    const std::optional<Value> arguments = pop();
    const std::optional<Value> function = pop();
    if (!arguments || !function || function->kind != Value::Global)
        return false;
    if (function->text != "torch._utils _rebuild_tensor_v2")
        return push({});
    if (arguments->items.size() < 4 || arguments->items[0].kind != Value::Storage)
        return false;
    return push({.kind = Value::Tensor, .items = arguments->items});
}

bool Pickle::step(unsigned char opcode)
{
    switch (opcode) {
    case 0x80: // PROTO
        m_in.take(1);
        return m_in.ok;
    case 0x95: // FRAME
        m_in.take(8);
        return m_in.ok;
    case 'c': { // GLOBAL
        const std::string module(m_in.line());
        return push({.kind = Value::Global, .text = module + " " + std::string(m_in.line())});
    }
    case '(':
        return push({.kind = Value::Mark});
    case ')':
        return push({.kind = Value::Tuple});
    case '}':
    case 'N':
    case 0x88: // NEWTRUE
    case 0x89: // NEWFALSE
        return push({});
    case 'K':
        return pushInteger(m_in.number(1));
    case 'M':
        return pushInteger(m_in.number(2));
    case 'J':
        return pushInteger(m_in.number(4));
    case 'X':
        return pushText(m_in.number(4));
    case 0x8c: // SHORT_BINUNICODE
        return pushText(m_in.number(1));
    case 't':
        return markedTuple();
    case 0x85:
    case 0x86:
    case 0x87: // TUPLE1, 2, 3
        return tuple(opcode - 0x84U);
    case 'Q':
        return storage();
    case 'R':
        return reduce();
    case 'q':
        return remember(m_in.number(1));
    case 'r':
        return remember(m_in.number(4));
    case 'h':
        return recall(m_in.number(1));
    case 'j':
        return recall(m_in.number(4));
    default:
        return false;
    }
}

std::optional<Value> Pickle::run()
{
    for (;;) {
        const auto opcode = static_cast<unsigned char>(m_in.number(1));
        if (!m_in.ok)
            return {};
        if (opcode == '.')
            return pop();
        if (!step(opcode) || !m_in.ok)
            return {};
    }
}

/// Bytes and signedness of an element, by the storage's class.
std::optional<std::pair<std::size_t, bool>> elementOf(const Value& storage)
{
    static const std::map<std::string, std::pair<std::size_t, bool>> known = {
        {"torch ByteStorage", {1, false}}, {"torch CharStorage", {1, true}},
        {"torch ShortStorage", {2, true}}, {"torch IntStorage", {4, true}},
        {"torch LongStorage", {8, true}},
    };
    const auto it = known.find(storage.items.front().text);
    return it == known.end() ? std::nullopt : std::optional(it->second);
}

std::int64_t signedValue(std::uint64_t raw, std::size_t bytes, bool isSigned)
{
    const std::size_t shift = 64 - 8 * bytes;
    return isSigned ? static_cast<std::int64_t>(raw << shift) >> shift
                    : static_cast<std::int64_t>(raw);
}

/// The tensor's values, if it is contiguous and its storage is there in full.
std::optional<IntegerTensor> valuesOf(const Value& tensor,
                                      const std::map<std::string, std::string_view>& members)
{
    const Value &storage = tensor.items[0], &shape = tensor.items[2], &strides = tensor.items[3];
    const auto element = elementOf(storage);
    const auto data = members.find("data/" + storage.text);
    if (!element || data == members.end() || tensor.items[1].integer != 0 ||
        shape.kind != Value::Tuple || shape.items.size() != strides.items.size())
        return {};
    IntegerTensor out;
    std::uint64_t count = 1;
    for (std::size_t i = shape.items.size(); i-- > 0;) {
        const std::int64_t size = shape.items[i].integer;
        if (size < 1 || static_cast<std::uint64_t>(size) > maximalBytes / count ||
            strides.items[i].integer != static_cast<std::int64_t>(count))
            return {};
        count *= static_cast<std::uint64_t>(size);
        out.shape.insert(out.shape.begin(), size);
    }
    const auto [bytes, isSigned] = *element;
    Bytes in{data->second};
    for (std::uint64_t i = 0; i < count && in.ok; ++i)
        out.values.push_back(signedValue(in.number(bytes), bytes, isSigned));
    return in.ok ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace

Result<IntegerTensor> readTorchIntegers(const std::filesystem::path& path)
{
    std::error_code code;
    const std::uintmax_t size = std::filesystem::file_size(path, code);
    if (code)
        return badInput("cannot be read: " + code.message(), path.string());
    const auto notOne = [&] {
        return badInput("is not one tensor of integers as torch.save writes it", path.string());
    };
    if (size > maximalBytes)
        return notOne();
    MLA_TRY(file, readFile(path));
    const auto members = zipMembers(file);
    if (!members || !members->contains("data.pkl"))
        return notOne();
    const std::optional<Value> value = Pickle(members->at("data.pkl")).run();
    if (!value || value->kind != Value::Tensor)
        return notOne();
    std::optional<IntegerTensor> tensor = valuesOf(*value, *members);
    if (!tensor)
        return notOne();
    return std::move(*tensor);
}

} // namespace mla
