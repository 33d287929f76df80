// SPDX-License-Identifier: GPL-3.0-or-later
#include <limits>

#include "core/store/h5.h"
#include "core/store/h5_detail.h"

namespace mla::h5
{

Handle variableTextType(H5T_cset_t characters)
{
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), H5T_VARIABLE);
    H5Tset_cset(type.id(), characters);
    return type;
}

std::string withoutPadding(const char* text, std::size_t size)
{
    while (size > 0 && text[size - 1] == '\0')
        --size;
    return {text, size};
}

namespace
{

/// An attribute is a label or a number; the format itself stops at 64 KiB.
constexpr std::size_t attributeLimit = std::size_t{1} << 20;

Status writeAttribute(hid_t object, const std::string& path, const std::string& name, hid_t stored,
                      hid_t memory, const void* data)
{
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle attribute(
        H5Acreate2(object, name.c_str(), stored, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid() || H5Awrite(attribute.id(), memory, data) < 0)
        return failure(path, "cannot write attribute '" + name + "'");
    return {};
}

struct OpenedAttribute {
    Handle attribute, type;
};

Result<OpenedAttribute> openAttribute(hid_t object, const std::string& path,
                                      const std::string& name)
{
    OpenedAttribute opened;
    opened.attribute = Handle(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!opened.attribute.valid())
        return failure(path, "attribute '" + name + "' is missing or damaged");
    opened.type = Handle(H5Aget_type(opened.attribute.id()), H5Tclose);
    const Handle space(H5Aget_space(opened.attribute.id()), H5Sclose);
    if (!opened.type.valid() || !space.valid() || H5Sget_simple_extent_npoints(space.id()) != 1 ||
        H5Tget_size(opened.type.id()) > attributeLimit)
        return failure(path, "attribute '" + name + "' must be a single value");
    return opened;
}

} // namespace

bool Group::hasAttribute(const std::string& name) const
{
    return H5Aexists(m_handle.id(), name.c_str()) > 0;
}

template <Number T>
Status Group::setAttribute(const std::string& name, T value)
{
    return writeAttribute(m_handle.id(), m_path, name, storedType<T>(), memoryType<T>(), &value);
}

Status Group::setTextAttribute(const std::string& name, const std::string& text)
{
    if (text.find('\0') != std::string::npos)
        return badInput("'" + m_path + "@" + name + "': text with NUL characters");
    const Handle type = variableTextType(H5T_CSET_UTF8);
    const char* pointer = text.c_str();
    return writeAttribute(m_handle.id(), m_path, name, type.id(), type.id(), &pointer);
}

template <Number T>
Result<T> Group::attribute(const std::string& name) const
{
    // Other programs write integers of their own width: read the widest, then look if it fits.
    using Wide =
        std::conditional_t<std::is_same_v<T, double>, double,
                           std::conditional_t<std::is_same_v<T, std::uint64_t>, T, std::int64_t>>;
    MLA_TRY(opened, openAttribute(m_handle.id(), m_path, name));
    const std::string label = m_path + "@" + name;
    MLA_CHECK(checkNumeric<Wide>(opened.type.id(), label));
    Wide value = 0;
    if (H5Aread(opened.attribute.id(), memoryType<Wide>(), &value) < 0)
        return failure(label, "cannot read");
    if constexpr (!std::is_same_v<T, Wide>)
        if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
            return badInput("'" + label + "': " + std::to_string(value) + " is out of range");
    return static_cast<T>(value);
}

Result<std::string> Group::textAttribute(const std::string& name) const
{
    MLA_TRY(opened, openAttribute(m_handle.id(), m_path, name));
    if (H5Tget_class(opened.type.id()) != H5T_STRING)
        return badInput("'" + m_path + "@" + name + "': must hold text");
    if (H5Tis_variable_str(opened.type.id()) > 0) {
        char* text = nullptr;
        if (H5Aread(opened.attribute.id(), opened.type.id(), &text) < 0)
            return failure(m_path + "@" + name, "cannot read");
        std::string value = text ? text : "";
        H5free_memory(text);
        return value;
    }
    std::string buffer(H5Tget_size(opened.type.id()), '\0');
    if (H5Aread(opened.attribute.id(), opened.type.id(), buffer.data()) < 0)
        return failure(m_path + "@" + name, "cannot read");
    return withoutPadding(buffer.data(), buffer.size());
}

#define MLA_H5_INSTANTIATE(T)                                                                      \
    template Status Group::setAttribute<T>(const std::string&, T);                                 \
    template Result<T> Group::attribute<T>(const std::string&) const

MLA_H5_INSTANTIATE(std::uint8_t);
MLA_H5_INSTANTIATE(std::int32_t);
MLA_H5_INSTANTIATE(std::int64_t);
MLA_H5_INSTANTIATE(std::uint64_t);
MLA_H5_INSTANTIATE(double);

} // namespace mla::h5
