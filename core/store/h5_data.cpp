// SPDX-License-Identifier: GPL-3.0-or-later
// Datasets of an HDF5 group.
#include "core/store/h5.h"

#include <algorithm>
#include <array>

#include "core/store/h5_detail.h"

namespace mla::h5
{

namespace
{

/// Small data stand in the object header: one read instead of two.
constexpr std::size_t compactLimit = 4096;
/// The most that deflate, the densest of HDF5's filters, can expand.
constexpr std::uint64_t deflateRatio = 1032;
Handle textType(std::size_t length)
{
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), std::max<std::size_t>(length, 1));
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
    H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
    return type;
}

Handle makeSpace(std::span<const hsize_t> extents)
{
    if (extents.empty())
        return {H5Screate(H5S_SCALAR), H5Sclose};
    return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
}

/// `extents` empty: a scalar.
Status writeDataset(hid_t group, const std::string& path, const std::string& name, hid_t stored,
                    hid_t memory, std::span<const hsize_t> extents, const void* data)
{
    std::size_t bytes = H5Tget_size(stored);
    for (const hsize_t extent : extents)
        bytes *= extent;
    const Handle space = makeSpace(extents);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(creation.id(), false); // equal content, equal bytes
    if (bytes > 0 && bytes <= compactLimit)
        H5Pset_layout(creation.id(), H5D_COMPACT);
    const Handle dataset(H5Dcreate2(group, name.c_str(), stored, space.id(), H5P_DEFAULT,
                                    creation.id(), H5P_DEFAULT),
                         H5Dclose);
    if (!dataset.valid())
        return failure(path, "cannot create the dataset");
    if (bytes > 0 && H5Dwrite(dataset.id(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        return failure(path, "cannot write");
    return {};
}

/// An opened dataset whose declared size the file really holds.
struct Opened {
    Handle dataset, type;
    std::vector<hsize_t> extents; ///< empty: a scalar
    std::size_t count = 1;        ///< elements
};

Status checkStorage(const Opened& opened, const std::string& path)
{
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(opened.count),
                               static_cast<std::uint64_t>(H5Tget_size(opened.type.id())), &bytes))
        return badInput("'" + path + "': its size overflows");
    const std::uint64_t held = H5Dget_storage_size(opened.dataset.id());
    if (bytes <= held || H5Tis_variable_str(opened.type.id()) > 0)
        return {};
    const Handle creation(H5Dget_create_plist(opened.dataset.id()), H5Pclose);
    const bool filtered = creation.valid() && H5Pget_nfilters(creation.id()) > 0;
    if (filtered && bytes / deflateRatio <= held)
        return {};
    return badInput("'" + path + "': claims " + std::to_string(bytes) + " bytes, the file holds " +
                    std::to_string(held));
}

Result<Opened> openDataset(hid_t group, const std::string& path, const std::string& name,
                           std::size_t dimensions)
{
    Opened opened;
    opened.dataset = Handle(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!opened.dataset.valid())
        return failure(path, "cannot open the dataset");
    opened.type = Handle(H5Dget_type(opened.dataset.id()), H5Tclose);
    const Handle space(H5Dget_space(opened.dataset.id()), H5Sclose);
    const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.id()) : -1;
    if (!opened.type.valid() || rank != static_cast<int>(dimensions) ||
        H5Sget_simple_extent_type(space.id()) == H5S_NULL)
        return failure(path, "must have " + std::to_string(dimensions) + " dimensions, has " +
                                 std::to_string(rank));
    opened.extents.resize(dimensions);
    if (dimensions > 0)
        H5Sget_simple_extent_dims(space.id(), opened.extents.data(), nullptr);
    for (const hsize_t extent : opened.extents)
        if (__builtin_mul_overflow(opened.count, static_cast<std::size_t>(extent), &opened.count))
            return badInput("'" + path + "': its size overflows");
    MLA_CHECK(checkStorage(opened, path));
    return opened;
}

template <typename T>
Result<std::vector<T>> readNumbers(const Opened& opened, const std::string& path)
{
    MLA_CHECK(checkNumeric<T>(opened.type.id(), path));
    std::vector<T> values(opened.count);
    if (!values.empty() && H5Dread(opened.dataset.id(), memoryType<T>(), H5S_ALL, H5S_ALL,
                                   H5P_DEFAULT, values.data()) < 0)
        return failure(path, "cannot read");
    return values;
}

/// Strings of variable length, as h5py writes them into datasets. Our own datasets have none.
Result<std::vector<std::string>> readVariable(const Opened& opened, const std::string& path)
{
    const Handle type = variableTextType(H5Tget_cset(opened.type.id()));
    std::vector<char*> pointers(opened.count, nullptr);
    if (H5Dread(opened.dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
        return failure(path, "cannot read");
    std::vector<std::string> texts;
    for (char* pointer : pointers) {
        texts.emplace_back(pointer ? pointer : "");
        H5free_memory(pointer);
    }
    return texts;
}

Result<std::vector<std::string>> readStrings(const Opened& opened, const std::string& path)
{
    if (H5Tget_class(opened.type.id()) != H5T_STRING)
        return badInput("'" + path + "': must hold text");
    if (opened.count == 0)
        return std::vector<std::string>();
    if (H5Tis_variable_str(opened.type.id()) > 0) {
        if (opened.count > H5Dget_storage_size(opened.dataset.id()))
            return badInput("'" + path + "': claims more strings than the file holds");
        return readVariable(opened, path);
    }
    const std::size_t size = H5Tget_size(opened.type.id());
    std::string buffer(size * opened.count, '\0');
    if (H5Dread(opened.dataset.id(), opened.type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                buffer.data()) < 0)
        return failure(path, "cannot read");
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < opened.count; ++i)
        texts.push_back(withoutPadding(buffer.data() + i * size, size));
    return texts;
}

} // namespace

template <Number T>
Status Group::writeScalar(const std::string& name, T value)
{
    return writeDataset(m_handle.id(), child(name), name, storedType<T>(), memoryType<T>(), {},
                        &value);
}

template <Number T>
Status Group::writeVector(const std::string& name, std::span<const T> values)
{
    const std::array<hsize_t, 1> extents = {values.size()};
    return writeDataset(m_handle.id(), child(name), name, storedType<T>(), memoryType<T>(), extents,
                        values.data());
}

template <Number T>
Status Group::writeMatrix(const std::string& name, std::size_t rows, std::size_t columns,
                          std::span<const T> values)
{
    std::size_t count = 0;
    if (__builtin_mul_overflow(rows, columns, &count) || count != values.size())
        return badInput("'" + child(name) + "': " + std::to_string(values.size()) +
                        " values do not fill " + std::to_string(rows) + " x " +
                        std::to_string(columns));
    const std::array<hsize_t, 2> extents = {rows, columns};
    return writeDataset(m_handle.id(), child(name), name, storedType<T>(), memoryType<T>(), extents,
                        values.data());
}

Status Group::writeText(const std::string& name, std::string_view text)
{
    const std::string value = text.empty() ? std::string(1, '\0') : std::string(text);
    const Handle type = textType(value.size());
    return writeDataset(m_handle.id(), child(name), name, type.id(), type.id(), {}, value.data());
}

Status Group::writeTexts(const std::string& name, const std::vector<std::string>& texts)
{
    std::size_t size = 1;
    for (const std::string& text : texts)
        size = std::max(size, text.size());
    std::string buffer;
    for (const std::string& text : texts)
        buffer.append(text).append(size - text.size(), '\0');
    const Handle type = textType(size);
    const std::array<hsize_t, 1> extents = {texts.size()};
    return writeDataset(m_handle.id(), child(name), name, type.id(), type.id(), extents,
                        buffer.data());
}

template <Number T>
Result<T> Group::readScalar(const std::string& name) const
{
    MLA_TRY(opened, openDataset(m_handle.id(), child(name), name, 0));
    MLA_TRY(values, readNumbers<T>(opened, child(name)));
    return values.front();
}

template <Number T>
Result<std::vector<T>> Group::readVector(const std::string& name) const
{
    MLA_TRY(opened, openDataset(m_handle.id(), child(name), name, 1));
    return readNumbers<T>(opened, child(name));
}

template <Number T>
Result<Matrix<T>> Group::readMatrix(const std::string& name) const
{
    MLA_TRY(opened, openDataset(m_handle.id(), child(name), name, 2));
    MLA_TRY(values, readNumbers<T>(opened, child(name)));
    return Matrix<T>{opened.extents[0], opened.extents[1], std::move(values)};
}

Result<std::string> Group::readText(const std::string& name) const
{
    MLA_TRY(opened, openDataset(m_handle.id(), child(name), name, 0));
    MLA_TRY(texts, readStrings(opened, child(name)));
    return std::move(texts.front());
}

Result<std::vector<std::string>> Group::readTexts(const std::string& name) const
{
    MLA_TRY(opened, openDataset(m_handle.id(), child(name), name, 1));
    return readStrings(opened, child(name));
}

#define MLA_H5_INSTANTIATE(T)                                                                      \
    template Status Group::writeScalar<T>(const std::string&, T);                                  \
    template Status Group::writeVector<T>(const std::string&, std::span<const T>);                 \
    template Status Group::writeMatrix<T>(const std::string&, std::size_t, std::size_t,            \
                                          std::span<const T>);                                     \
    template Result<T> Group::readScalar<T>(const std::string&) const;                             \
    template Result<std::vector<T>> Group::readVector<T>(const std::string&) const;                \
    template Result<Matrix<T>> Group::readMatrix<T>(const std::string&) const

MLA_H5_INSTANTIATE(std::uint8_t);
MLA_H5_INSTANTIATE(std::int32_t);
MLA_H5_INSTANTIATE(std::int64_t);
MLA_H5_INSTANTIATE(std::uint64_t);
MLA_H5_INSTANTIATE(double);

} // namespace mla::h5
