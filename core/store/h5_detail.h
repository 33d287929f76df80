// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the h5*.cpp only.
#pragma once

#include <string>

#include <hdf5.h>

#include "core/store/h5.h"

namespace mla::h5
{

/// The innermost entry of HDF5's error stack, which names the actual cause; cleared afterwards.
std::string takeReason();

/// BadInput: "'/path': what: reason of HDF5".
Error failure(const std::string& path, const std::string& what);

template <typename T>
hid_t memoryType()
{
    if constexpr (std::is_same_v<T, std::uint8_t>)
        return H5T_NATIVE_UINT8;
    else if constexpr (std::is_same_v<T, std::int32_t>)
        return H5T_NATIVE_INT32;
    else if constexpr (std::is_same_v<T, std::int64_t>)
        return H5T_NATIVE_INT64;
    else if constexpr (std::is_same_v<T, std::uint64_t>)
        return H5T_NATIVE_UINT64;
    else
        return H5T_NATIVE_DOUBLE;
}

template <typename T>
hid_t storedType()
{
    if constexpr (std::is_same_v<T, std::uint8_t>)
        return H5T_STD_U8LE;
    else if constexpr (std::is_same_v<T, std::int32_t>)
        return H5T_STD_I32LE;
    else if constexpr (std::is_same_v<T, std::int64_t>)
        return H5T_STD_I64LE;
    else if constexpr (std::is_same_v<T, std::uint64_t>)
        return H5T_STD_U64LE;
    else
        return H5T_IEEE_F64LE;
}

/// The type class of numbers, and that integers fit T.
template <typename T>
Status checkNumeric(hid_t type, const std::string& path)
{
    const H5T_class_t kind = H5Tget_class(type);
    if (kind != H5T_INTEGER && kind != H5T_FLOAT)
        return badInput("'" + path + "': must hold numbers");
    if constexpr (!std::is_same_v<T, double>)
        if (kind != H5T_INTEGER || H5Tget_size(type) > sizeof(T))
            return badInput("'" + path + "': must hold integers of at most " +
                            std::to_string(8 * sizeof(T)) + " bits");
    return {};
}
/// UTF-8 or ASCII text of variable length.
Handle variableTextType(H5T_cset_t characters);
/// `text` without NUL bytes at its end.
std::string withoutPadding(const char* text, std::size_t size);

} // namespace mla::h5
