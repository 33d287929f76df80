// SPDX-License-Identifier: GPL-3.0-or-later
// Result<T>: the value of an operation that can fail for reasons outside the program (files, JSON,
// HDF5, devices, numerics). Programmer errors are assertions, not Results.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace mla
{

/// What went wrong, in the terms a caller can act on. The command line maps these to exit codes.
enum class ErrorCode {
    Usage,         ///< contradictory or impossible request (exit 2)
    BadInput,      ///< a file, tensor or key is not what it must be (exit 3)
    ComputeFailed, ///< numerics, memory, device or disk failed while working (exit 4)
    Cancelled,     ///< the user asked to stop; never reported as "finished" (exit 130)
};

struct Error {
    ErrorCode code = ErrorCode::BadInput;
    std::string message; ///< names file, tensor or key and says what was expected
    std::string context; ///< where: a path, a layer, a stage
    std::string hint;    ///< what the user can do; may be empty

    /// The same error, tagged with where it happened (outermost first, joined by ": ").
    [[nodiscard]] Error within(const std::string& where) &&
    {
        context = context.empty() ? where : where + ": " + context;
        return std::move(*this);
    }
    /// One readable line: "context: message (hint)".
    [[nodiscard]] std::string text() const
    {
        std::string line = context.empty() ? message : context + ": " + message;
        return hint.empty() ? line : line + " (" + hint + ")";
    }
};

inline Error badInput(std::string message, std::string context = {}, std::string hint = {})
{
    return {ErrorCode::BadInput, std::move(message), std::move(context), std::move(hint)};
}
inline Error usageError(std::string message, std::string hint = {})
{
    return {ErrorCode::Usage, std::move(message), {}, std::move(hint)};
}
inline Error computeFailed(std::string message, std::string context = {}, std::string hint = {})
{
    return {ErrorCode::ComputeFailed, std::move(message), std::move(context), std::move(hint)};
}
inline Error cancelled()
{
    return {ErrorCode::Cancelled, "cancelled", {}, {}};
}

template <typename T>
class [[nodiscard]] Result
{
public:
    Result(T value) : m_state(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : m_state(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return m_state.index() == 0; }
    explicit operator bool() const { return ok(); }

    [[nodiscard]] T& value() &
    {
        assert(ok());
        return *std::get_if<0>(&m_state);
    }
    [[nodiscard]] const T& value() const&
    {
        assert(ok());
        return *std::get_if<0>(&m_state);
    }
    [[nodiscard]] T&& value() &&
    {
        assert(ok());
        return std::move(*std::get_if<0>(&m_state));
    }
    [[nodiscard]] const Error& error() const&
    {
        assert(!ok());
        return *std::get_if<1>(&m_state);
    }
    [[nodiscard]] Error&& error() &&
    {
        assert(!ok());
        return std::move(*std::get_if<1>(&m_state));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

private:
    std::variant<T, Error> m_state;
};

template <>
class [[nodiscard]] Result<void>
{
public:
    Result() = default;
    Result(Error error) : m_error(std::move(error)) {}
    [[nodiscard]] bool ok() const { return !m_error.has_value(); }
    explicit operator bool() const { return ok(); }
    [[nodiscard]] const Error& error() const&
    {
        assert(!ok());
        return *m_error;
    }
    [[nodiscard]] Error&& error() &&
    {
        assert(!ok());
        return std::move(*m_error);
    }

private:
    std::optional<Error> m_error;
};
using Status = Result<void>;

} // namespace mla

/// MLA_TRY(name, expression): `name` is a reference to the value, or the function returns the
/// error.
#define MLA_TRY(name, ...)                                                                         \
    auto name##Result_ = (__VA_ARGS__);                                                            \
    if (!name##Result_)                                                                            \
        return std::move(name##Result_).error();                                                   \
    auto& name = name##Result_.value() /* NOLINT(bugprone-macro-parentheses) */

/// MLA_CHECK(expression): the function returns the error of a Result, or goes on.
#define MLA_CHECK(...)                                                                             \
    do {                                                                                           \
        if (auto status_ = (__VA_ARGS__); !status_)                                                \
            return std::move(status_).error();                                                     \
    } while (false)
